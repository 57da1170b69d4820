"""Mail that takes too long stops no archive: what is computed from its text alone is computed in a child process, which
may take only so much CPU and memory; and filing it, with the database, has a limit of CPU of its own.

The limits of bot/mail/limits.py refuse what is known to be expensive; this is for what nobody has thought of yet. A
fork of the reader, which has everything loaded, parses mail by mail and sends each reading back; given a reading, it
works out what that reports, or does to a report. A mail that kills a fresh child is an error, which quarantines it;
whatever else ends a child costs another fork.
"""

import gc
import math
import os
import resource
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import ParamSpec, TypeVar, cast

from bot.mail.limits import OverLimit
from bot.mail.settings import BotSettings
from bot.processes import FORKING, fork, kill
from bot.replies.reading import Reading, understand

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Unparsable(ValueError):  # noqa: N818
    """What a parser raised for a mail, with its type."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a child may take: seconds of CPU for one answer, bytes beyond what the reader has, and its answers."""

    cpu: int = 3
    memory: int = 1 << 30
    calls: int = 5000  # then a fresh one: what it caches would count against the memory of the next mail


LIMITS = Limits()
# Seconds of CPU for filing one mail, here and, as much again, in the child; and for all of a batch, both together.
FILING_CPU, FILING_CPU_OF_ALL = 10.0, 600.0


@contextmanager
def limited_cpu(seconds: float) -> Iterator[None]:
    """Raise OverLimit in the block once it has taken that much CPU, and again each second, in case something swallows
    it. Python's `re` looks for signals meanwhile, so no pattern holds it up. Only in the main thread, which gets them:
    in a worker that runs its tasks in threads, the sandbox alone limits what a mail takes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise OverLimit(f"filing it took more than {seconds:.0f} s of CPU")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


class Sandbox:
    """Computes in a child, which is forked when needed, and ends with this object."""

    def __init__(self, settings: BotSettings, limits: Limits = LIMITS) -> None:
        self.settings, self.limits = settings, limits
        self.spent = 0.0  # seconds of CPU that the answers took
        self._most = math.inf
        self._pipe: Connection | None = None
        self._calls = 0  # that the child has answered
        self._kill: Callable[[], int | None] = lambda: None

    def close(self) -> int | None:
        """End the child, and return its wait status. The next mail is parsed by a fresh one, which knows the keys that
        were fetched meanwhile.
        """
        status = self._kill()
        if self._pipe:
            self._pipe.close()
            self._pipe = None
        return status

    def understand(self, raw: bytes) -> Reading | Exception:
        """Return the reading of a mail, or why it could not be read: Unparsable or OverLimit."""
        return cast("Reading | Exception", self._ask(raw))

    def allow(self, seconds: float) -> None:
        """Let `call` take that much CPU from now on, in all its answers: a mail may be about many reports."""
        self._most = self.spent + seconds

    def call(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Return what a function of a module makes of its arguments. Raises Unparsable or OverLimit."""
        if self.spent > self._most:
            raise OverLimit("reading it took more CPU than one mail may take")
        answer = self._ask(partial(function, *args, **kwargs))
        if isinstance(answer, Unparsable | OverLimit):
            raise answer
        return cast("_T", answer)

    def _ask(self, work: bytes | Callable[[], object]) -> object:
        if self._calls >= self.limits.calls:
            self.close()
        while True:
            pipe = self._pipe or self._fork()
            try:
                pipe.send(work)
                answer: object
                answer, seconds = pipe.recv()  # from our own fork
            except (EOFError, OSError):
                status = self.close()
                # It has taken its CPU, or killed a fresh child; else what the child had kept may have been too much.
                if not self._calls or (status and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU):
                    self.spent += self.limits.cpu
                    most = f"{self.limits.cpu} seconds of CPU or {self.limits.memory >> 20:,} MB of memory"
                    return OverLimit(f"reading it took more than {most}")
                continue
            except BaseException:  # the answer may still come
                self.close()
                raise
            self._calls += 1
            self.spent += seconds
            return answer

    def _fork(self) -> Connection:
        with FORKING:
            ours, theirs = Pipe()
            pid = fork(partial(_serve, ours, theirs, self.settings, self.limits))
            theirs.close()  # so that the end of the child is the end of the pipe
        self._kill = weakref.finalize(self, _end, pid, os.getpid())
        self._pipe, self._calls = ours, 0
        return ours


def _end(pid: int, parent: int) -> int:
    """End a child; do nothing in a fork of its parent, which has a copy of the object."""
    return kill(pid) if os.getpid() == parent else 0


def _serve(ours: Connection, theirs: Connection, settings: BotSettings, limits: Limits) -> None:
    ours.close()
    gc.freeze()  # a collection would copy every page of the reader that holds an object
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError, ValueError):  # where /proc is missing, CPU alone is limited
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + limits.memory
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    with suppress(EOFError):
        while True:
            work = theirs.recv()  # from the reader
            before = time.process_time()
            soft = int(before) + limits.cpu + 1
            resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))
            signal.alarm(20 * limits.cpu + 20)  # what waits, takes no CPU
            try:
                answer = understand(work, settings) if isinstance(work, bytes) else work()
            except MemoryError:
                os._exit(1)
            except Exception as error:
                answer = Unparsable(f"{type(error).__name__}: {error}"[:1000])
            theirs.send((answer, time.process_time() - before))
            signal.alarm(0)  # the reader may take its time before the next mail
