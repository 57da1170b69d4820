"""Parse mails in a child process that may take only so much CPU and memory, so that no mail stops an archive.

The limits of bot/mail/limits.py refuse what is known to be expensive; this is for what nobody has thought of yet. A
fork parses a batch and sends back each reading as it comes. If it dies, the mail after the last reading is the one that
killed it: that one is returned as an error, which quarantines it, and another fork reads on behind it.

A fork of a reader that has everything loaded takes some milliseconds.
"""

from __future__ import annotations

import os
import pickle
import resource
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bot.mail.limits import OverLimit
from bot.mail.settings import BotSettings
from bot.processes import fork, kill
from bot.replies.reading import Reading, understand


class Unparsable(ValueError):  # noqa: N818
    """What a parser raised for a mail, with its type."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a child may take for one mail: seconds of CPU, and bytes beyond what the reader has."""

    cpu: int = 3
    memory: int = 1 << 30


LIMITS = Limits()
_BLOCK = 1 << 20


def understand_all(raws: Sequence[bytes], settings: BotSettings, limits: Limits = LIMITS) -> list[Reading | Exception]:
    """Return the reading of each mail, or why it could not be read: Unparsable or OverLimit."""
    readings: list[Reading | Exception] = []
    while len(readings) < len(raws):
        readings += _by_child(raws[len(readings) :], settings, limits)
        if len(readings) < len(raws):
            most = f"{limits.cpu} seconds of CPU or {limits.memory >> 20:,} MB of memory"
            readings.append(OverLimit(f"reading it took more than {most}"))
    return readings


def _by_child(raws: Sequence[bytes], settings: BotSettings, limits: Limits) -> list[Reading | Exception]:
    """Return what a child read before it ended."""
    receiver, sender = os.pipe()
    pid = fork(partial(_send, receiver, sender, raws, settings, limits))
    os.close(sender)
    readings: list[Reading | Exception] = []
    try:
        # It may be cut off, where the child died.
        with os.fdopen(receiver, "rb", _BLOCK) as pipe, suppress(EOFError, pickle.UnpicklingError):
            while len(readings) < len(raws):
                readings.append(pickle.load(pipe))  # from our own fork
    finally:
        kill(pid)
    return readings


def _send(receiver: int, sender: int, raws: Sequence[bytes], settings: BotSettings, limits: Limits) -> None:
    os.close(receiver)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError, ValueError):  # where /proc is missing, CPU alone is limited
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + limits.memory
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    with os.fdopen(sender, "wb", _BLOCK) as pipe:
        for raw in raws:
            used = resource.getrusage(resource.RUSAGE_SELF)
            soft = int(used.ru_utime + used.ru_stime) + limits.cpu + 1
            resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))
            signal.alarm(20 * limits.cpu + 20)  # what waits, takes no CPU
            try:
                reading: Reading | Exception = understand(raw, settings)
            except MemoryError:
                pipe.flush()
                os._exit(1)
            except Exception as error:
                reading = Unparsable(f"{type(error).__name__}: {error}"[:1000])
            pipe.write(pickle.dumps(reading, pickle.HIGHEST_PROTOCOL))
            pipe.flush()  # so that it is known where it dies
