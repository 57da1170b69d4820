"""A tree followed once: held, fetched, walked, let go; and what went wrong kept beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from bot.errors import Unreadable
from bot.holding import hold, let_go
from bot.identity import Identity
from bot.upstream.fetching import fetch
from bot.upstream.tracking import TrackTally, track
from tracker.models import Tree


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds for a fetch, None: don't fetch; and how long a worker that gives no sign of life keeps others away."""

    fetch: float | None
    lease: timedelta


def follow(
    tree: Tree,
    identity: Identity,
    now: datetime,
    patience: Patience,
    others: Sequence[Path] = (),
    progress: Callable[[int], None] = lambda count: None,
) -> tuple[TrackTally, str]:
    """Fetch and walk a tree. Returns what was new, and why it could not be fetched: what is there is walked all the
    same. Busy where another worker has it, Unreadable where it can't be walked.
    """
    hold(tree, patience.lease + timedelta(seconds=patience.fetch or 0))
    trouble = ""
    try:
        try:
            if patience.fetch is not None and tree.path:
                fetch(Path(tree.path), patience.fetch)
        except (Unreadable, OSError) as error:
            trouble = f"{tree.name}: {error}; what is there was walked"
        tally = track(tree, identity, now, others, progress)
        _say(tree, trouble)
        return tally, trouble
    except (Unreadable, OSError) as error:
        _say(tree, str(error))
        raise
    finally:
        let_go(tree)


def _say(tree: Tree, trouble: str) -> None:
    if tree.error != trouble:
        Tree.objects.filter(pk=tree.pk).update(error=trouble[:1000])
