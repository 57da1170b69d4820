"""Timers without a clock: a test ends them, and none of them outlives it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any


class Timers:
    """In place of `threading.Timer`: those that were started."""

    def __init__(self) -> None:
        self.running: list[tuple[float, Callable[[], None]]] = []

    def __call__(self, seconds: float, done: Callable[..., None], args: tuple[Any, ...]) -> Timers:
        self._asked = (seconds, partial(done, *args))
        return self

    def start(self) -> None:
        self.running.append(self._asked)

    def end(self) -> list[float]:
        """Let all of them end. Return their seconds."""
        ended, self.running = self.running, []
        for _seconds, done in ended:
            done()
        return [seconds for seconds, _done in ended]
