"""One pass over a tree: lease, fetch, walk, release; errors are kept on the tree."""

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
_SIGN_OF_LIFE = 100_000  # commits between renewals of the lease


@dataclass(frozen=True, slots=True)
class Patience:
    """`fetch`: seconds for a fetch, None for no fetch; `lease`: how long a worker that has died keeps others away."""

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
    """Fetch and walk a tree. Return what was new, and why the fetch failed ("" if it didn't; the walk goes on anyway).

    Raise Busy if another worker has the tree, Unreadable if it can't be walked.
    """
    acquire(tree, patience.lease + timedelta(seconds=patience.fetch or 0))
    length = patience.lease
    trouble = ""

    def keeping(count: int) -> None:
        """Report progress, and renew the lease now and then."""
        progress(count)
        if count % _SIGN_OF_LIFE == 0:
            extend(tree, length)

    try:
        try:
            if patience.fetch is not None and _is_due(tree, now, patience.rest):
                Tree.objects.filter(pk=tree.pk).update(fetched_at=now)
                fetch(Path(tree.path), patience.fetch)
        except (Unreadable, OSError) as error:
            trouble = f"{tree.name}: {error}; walked the commits fetched before"
        tally = track(tree, identity, now, others, keeping, partial(extend, tree, length))
        _say(tree, trouble)
        return tally, trouble
    except Busy:
        raise  # the tree's error is for the other worker to set
    except (Unreadable, OSError) as error:
        _say(tree, str(error))
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        # Unforeseen content in a hostile tree: the other trees go on, and the log has the traceback.
        log.exception("%s", tree)
        _say(tree, f"{tree}: {type(error).__name__}: {error}; this is a bug, please report it")
        raise Unreadable(tree.error) from error
    finally:
        release(tree)


def _is_due(tree: Tree, now: datetime, rest: timedelta) -> bool:
    return bool(tree.path) and (tree.fetched_at is None or now - tree.fetched_at >= rest)


def _say(tree: Tree, trouble: str) -> None:
    tree.error = " ".join(trouble.split())[:1000]
    Tree.objects.filter(pk=tree.pk).exclude(error=tree.error).update(error=tree.error)
