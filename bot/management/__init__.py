"""What the commands share: how they fail, the progress of long work, folded reports, bulletins, who runs them."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.management.base import CommandError
from django.utils import timezone

from tracker.domain.events import InvalidInput
from tracker.services.event_log import progress

if TYPE_CHECKING:
    from bot.notifications.digest import Bulletin, BulletinConfig

# --- How a command fails: with an exit code of sysexits.h ---

usage_error = partial(CommandError, returncode=os.EX_USAGE)
no_input = partial(CommandError, returncode=os.EX_NOINPUT)
data_error = partial(CommandError, returncode=os.EX_DATAERR)
unavailable = partial(CommandError, returncode=os.EX_UNAVAILABLE)
try_again = partial(CommandError, returncode=os.EX_TEMPFAIL)
config_error = partial(CommandError, returncode=os.EX_CONFIG)

# --- Progress ---


@contextmanager
def counting(what: str, unit: str) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the count so far."""
    if not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.completed:,.0f}"), TextColumn(unit))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda count: bar.update(task, completed=count)


# --- Put a bulletin into the outbox from a management command ---


def hold_bulletin(bulletin: Bulletin, config: BulletinConfig) -> str:
    """Hold the bulletin and return one line about the result; CommandError if it can't be sent."""
    from bot.notifications import digest  # with all that composes mail, which most commands start without

    try:
        row = digest.hold(bulletin, config, timezone.now())
    except InvalidInput as error:
        raise CommandError(str(error)) from None
    return f"mail {row.pk} to {', '.join(row.recipients)} is {row.state}: {row.reason}"


# --- Printed reports ---


def require_folded() -> None:
    """Raise CommandError while reports are being folded."""
    if at := progress():
        raise CommandError(f"{at}; wait for a worker, or run `{settings.PROGRAM} refold`")


# --- Who runs it ---


def user_at_terminal() -> str:
    """Return the system user who runs the command, for the record."""
    try:
        return f"{getpass.getuser()} (command line)"
    except (OSError, KeyError):  # a user without a name, as in containers
        return f"user {os.getuid()} (command line)"
