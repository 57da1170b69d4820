"""One pass over a tree: lease, fetch, walk, order of builds, release; errors are kept on the tree."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from bot.errors import Busy, Unreadable
from bot.git.fetch import fetch
from bot.mail.identity import BotIdentity
from bot.runtime.leases import acquire, extend, release
from bot.upstream.tracking.build_order import order_builds
from bot.upstream.tracking.track import TrackTally, track
from tracker.models import Tree

log = logging.getLogger(__name__)
_RENEW_EVERY = 100_000  # commits between renewals of the lease


@dataclass(frozen=True, slots=True)
class Patience:
    """`fetch`: seconds for a fetch, None for no fetch; `lease`: how long a worker that has died keeps others away."""

    fetch: float | None
    lease: timedelta
    fetch_interval: timedelta = timedelta(0)  # between two fetches


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
    lease_time = patience.lease
    fetch_error = ""

    def report_progress(count: int) -> None:
        """Report progress, and renew the lease now and then."""
        progress(count)
        if count % _RENEW_EVERY == 0:
            extend(tree, lease_time)

    try:
        try:
            if patience.fetch is not None and _is_due(tree, now, patience.fetch_interval):
                Tree.objects.filter(pk=tree.pk).update(fetched_at=now)
                fetch(Path(tree.path), patience.fetch)
        except (Unreadable, OSError) as error:
            fetch_error = f"{tree.name}: {error}; walked the commits fetched before"
        tally = track(tree, identity, now, others, report_progress, partial(extend, tree, lease_time))
        order_builds(tree, now)
        Tree.objects.filter(pk=tree.pk).update(looked_at=now)
        _store_error(tree, fetch_error)
        return tally, fetch_error
    except Busy:
        raise  # the tree's error is for the other worker to set
    except (Unreadable, OSError) as error:
        _store_error(tree, str(error))
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        # Unforeseen content in a hostile tree: the other trees go on, and the log has the traceback.
        log.exception("%s", tree)
        _store_error(tree, f"{tree}: {type(error).__name__}: {error}; this is a bug, please report it")
        raise Unreadable(tree.error) from error
    finally:
        release(tree)


def _is_due(tree: Tree, now: datetime, interval: timedelta) -> bool:
    return bool(tree.path) and (tree.fetched_at is None or now - tree.fetched_at >= interval)


def _store_error(tree: Tree, error: str) -> None:
    tree.error = " ".join(error.split())[:1000]
    Tree.objects.filter(pk=tree.pk).exclude(error=tree.error).update(error=tree.error)
