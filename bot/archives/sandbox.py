"""Parse mails in a child process that may take only so much CPU and memory, so that no mail stops an archive.

The limits of bot/mail/limits.py refuse what is known to be expensive; this is for what nobody has thought of yet. A
batch is parsed by one fork. If that dies, or takes too long, the batch is halved until the one mail is found at which
it does; that mail is returned as an error, which quarantines it, and all others are read.

A fork of a reader that has everything loaded takes some milliseconds; what it read comes back through a pipe.
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
    """What a child may take: seconds of CPU for a batch and for each mail in it, bytes beyond what the reader has."""

    cpu: int = 10
    cpu_per_mail: float = 0.2
    memory: int = 1 << 30


LIMITS = Limits()
_BLOCK = 1 << 20


def understand_all(raws: Sequence[bytes], settings: BotSettings, limits: Limits = LIMITS) -> list[Reading | Exception]:
    """Return the reading of each mail, or why it could not be read: Unparsable or OverLimit."""
    if not raws:
        return []
    readings = _by_child(raws, settings, limits)
    if readings is not None:
        return readings
    if len(raws) == 1:
        cpu, memory = limits.cpu + limits.cpu_per_mail, limits.memory >> 20
        return [OverLimit(f"reading it took more than {cpu:.0f} seconds of CPU or {memory:,} MB of memory")]
    half = len(raws) // 2
    return [*understand_all(raws[:half], settings, limits), *understand_all(raws[half:], settings, limits)]


def _by_child(raws: Sequence[bytes], settings: BotSettings, limits: Limits) -> list[Reading | Exception] | None:
    """Return what a child read, or None if it died."""
    receiver, sender = os.pipe()
    pid = fork(partial(_send, receiver, sender, raws, settings, limits))
    os.close(sender)
    try:
        with os.fdopen(receiver, "rb", _BLOCK) as pipe:
            packed = pipe.read()
    finally:
        kill(pid)
    try:
        done: list[Reading | Exception] = pickle.loads(packed)  # from our own fork
    except Exception:  # cut off, where it died
        return None
    return done


def _send(receiver: int, sender: int, raws: Sequence[bytes], settings: BotSettings, limits: Limits) -> None:
    os.close(receiver)
    cpu = int(limits.cpu + limits.cpu_per_mail * len(raws)) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError, ValueError):  # where /proc is missing, CPU alone is limited
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + limits.memory
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    signal.alarm(3 * cpu)  # what waits, takes no CPU
    readings: list[Reading | Exception] = []
    for raw in raws:
        try:
            readings.append(understand(raw, settings))
        except MemoryError:
            raise  # of this batch; alone, the mail at fault is known
        except Exception as error:
            readings.append(Unparsable(f"{type(error).__name__}: {error}"[:1000]))
    with os.fdopen(sender, "wb", _BLOCK) as pipe:
        pickle.dump(readings, pipe, pickle.HIGHEST_PROTOCOL)
