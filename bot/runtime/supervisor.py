"""Run several processes as one: start them together, restart one that dies, stop them together."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType

from bot.runtime.processes import start_child

log = logging.getLogger(__name__)
_STABLE_AFTER = 10.0  # seconds; a process that lived longer is restarted at once
_LONGEST_WAIT = 30.0


@dataclass(slots=True)
class Child:
    """One supervised process."""

    name: str
    command: Sequence[str]
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    deaths: int = 0
    not_before: float = field(default=0.0)


class Supervisor:
    """Keeps its children running until SIGTERM or SIGINT, then stops them within `patience` seconds."""

    def __init__(self, commands: Mapping[str, Sequence[str]], patience: float = 15.0) -> None:
        self.children = [Child(name, command) for name, command in commands.items()]
        self.patience = patience
        self.ending = False

    def run(self) -> None:
        """Run until a signal arrives; return after all children have ended."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        try:
            while not self.ending:
                for child in self.children:
                    self._check(child)
                time.sleep(0.2)
        finally:
            self._end_all()

    def _end(self, number: int, frame: FrameType | None) -> None:
        self.ending = True

    def _check(self, child: Child) -> None:
        now = time.monotonic()
        if child.process and child.process.poll() is not None:
            code = child.process.returncode
            child.process = None
            child.deaths = 0 if now - child.started > _STABLE_AFTER else child.deaths + 1
            wait = min(_LONGEST_WAIT, 0.5 * 2 ** min(child.deaths, 10)) if child.deaths else 0.0
            child.not_before = now + wait
            log.warning("%s exited with %s; restarting in %.1f s", child.name, code, wait)
        if child.process is None and now >= child.not_before:
            child.process = start_child(child.command, new_session=True)
            child.started = now
            log.info("%s runs as process %d", child.name, child.process.pid)

    def _end_all(self) -> None:
        running = [child for child in self.children if child.process and child.process.poll() is None]
        for child in running:
            self._signal(child, signal.SIGTERM)
        deadline = time.monotonic() + self.patience
        for child in running:
            assert child.process
            try:
                child.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self._signal(child, signal.SIGKILL)
                child.process.wait()
            log.info("%s ended", child.name)

    def _signal(self, child: Child, number: signal.Signals) -> None:
        """Signal the process; SIGKILL goes to its whole process group."""
        assert child.process
        try:
            if number is signal.SIGKILL:
                os.killpg(child.process.pid, number)
            else:
                child.process.send_signal(number)
        except ProcessLookupError:
            pass
