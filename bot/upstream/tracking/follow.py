"""A tree followed once: held, fetched, walked, let go; and what went wrong kept beside it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from bot.errors import Busy, Unreadable
from bot.git.fetch import fetch
from bot.leases import acquire, extend, release
from bot.mail.identity import BotIdentity
from bot.upstream.tracking.track import TrackTally, track
from tracker.models import Tree

log = logging.getLogger(__name__)
_SIGN_OF_LIFE = 100_000  # commits


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds for a fetch, None: don't fetch; and how long a worker that gives no sign of life keeps others away."""

    fetch: float | None
    lease: timedelta
    rest: timedelta = timedelta(0)  # between two fetches


def follow(
    tree: Tree,
    identity: BotIdentity,
    now: datetime,
    patience: Patience,
    others: Sequence[Path] = (),
    progress: Callable[[int], None] = lambda count: None,
) -> tuple[TrackTally, str]:
    """Fetch and walk a tree. Returns what was new, and why it could not be fetched: what is there is walked all the
    same. Busy where another worker has it, Unreadable where it can't be walked.
    """
    acquire(tree, patience.lease + timedelta(seconds=patience.fetch or 0))
    length = patience.lease
    trouble = ""

    def keeping(count: int) -> None:
        """A sign of life, now and then, while the walk goes on."""
        progress(count)
        if count % _SIGN_OF_LIFE == 0:
            extend(tree, length)

    try:
        try:
            if patience.fetch is not None and _is_due(tree, now, patience.rest):
                Tree.objects.filter(pk=tree.pk).update(fetched_at=now)
                fetch(Path(tree.path), patience.fetch)
        except (Unreadable, OSError) as error:
            trouble = f"{tree.name}: {error}; what is there was walked"
        tally = track(tree, identity, now, others, keeping, partial(extend, tree, length))
        _say(tree, trouble)
        return tally, trouble
    except Busy:
        raise  # the other worker knows better
    except (Unreadable, OSError) as error:
        _say(tree, str(error))
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        # What nobody foresaw in a hostile tree; the others go on, and the log has all of it.
        log.exception("%s", tree)
        _say(tree, f"{tree}: {type(error).__name__}: {error}; this is a mistake of ours: please report it")
        raise Unreadable(tree.error) from error
    finally:
        release(tree)


def _is_due(tree: Tree, now: datetime, rest: timedelta) -> bool:
    return bool(tree.path) and (tree.fetched_at is None or now - tree.fetched_at >= rest)


def _say(tree: Tree, trouble: str) -> None:
    tree.error = " ".join(trouble.split())[:1000]
    Tree.objects.filter(pk=tree.pk).exclude(error=tree.error).update(error=tree.error)
