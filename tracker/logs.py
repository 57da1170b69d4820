"""What a log line is about (request, task, Message-ID …), bound once and added to all lines meanwhile; and an error of
the database as one line a minute. LOGGING names this module, so it is loaded before any model.

Lines are for people; with LOG_FORMAT=json structlog makes one JSON object of each. It is imported only then: that
takes a tenth of a second, which every command would pay.
"""

import logging
import time
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

from tracker.services.database import outage

_QUIET = 60.0  # seconds between two lines of a process about the database
_LONGEST = 200  # characters of a value; Message-IDs and paths come from strangers
_NOTHING: Mapping[str, str] = MappingProxyType({})
_bound: ContextVar[Mapping[str, str]] = ContextVar("bound", default=_NOTHING)


@contextmanager
def bound(**values: object) -> Iterator[None]:
    """Add these values to all lines that are logged inside."""
    token = _bound.set({**_bound.get(), **{name: _clean(value) for name, value in values.items()}})
    try:
        yield
    finally:
        _bound.reset(token)


class AddContext(logging.Filter):
    """Adds what is bound to each record: `bound`, and `context` for the line format."""

    def filter(self, record: logging.LogRecord) -> bool:
        values = _bound.get()
        record.bound = values
        record.context = "".join(f" {name}={value}" for name, value in values.items())
        return True


class OncePerMinute(logging.Filter):
    """Makes one line of an error of the database, without a traceback, and drops more of them for a minute."""

    def __init__(self) -> None:
        super().__init__()
        self._quiet_until = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        reason = outage(error)
        if not reason:
            return True
        if time.monotonic() < self._quiet_until:
            return False
        self._quiet_until = time.monotonic() + _QUIET
        record.msg, record.args = "%s (%s)", (reason, " ".join(str(error).split()))
        record.exc_info = record.exc_text = None
        return True


def json_formatter() -> logging.Formatter:
    """Return a formatter that writes JSON objects: event, level, logger, timestamp, what is bound, exception."""
    from structlog import processors, stdlib

    return stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            stdlib.add_log_level,
            stdlib.add_logger_name,
            processors.TimeStamper(fmt="iso", utc=True),
            _add_bound,
        ],
        processors=[
            stdlib.ProcessorFormatter.remove_processors_meta,
            processors.format_exc_info,
            processors.JSONRenderer(),
        ],
    )


def _add_bound(logger: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    event.update(getattr(event["_record"], "bound", {}))
    return event


def _clean(value: object) -> str:
    """Return a value on one line: a line break from a mail would look like a line of the log."""
    return "".join(letter if letter.isprintable() else "?" for letter in str(value)[:_LONGEST])
