"""Accuracy on a whole archive: the events that reading a dense epoch draws, against those that were judged by hand.

Prints events right, wrong, thin and missed, the mails filed, and the final state of each report.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.accuracy.shares import share
from benchmarks.archive import manage

SHARED = ROOT.parent / "shared" / "data"
BUNDLE = SHARED / "lore" / "cgroups.0.bundle"
JUDGED = SHARED / "archive-events-dev.json"
DUMP = """
import json
from tracker.models import Event, Message, Report
events = Event.objects.exclude(message_id="").values_list("message_id", "kind", "report__culprit__sha")
mails = Message.objects.values_list("relation", flat=True)
states = Report.objects.order_by("culprit__sha").values_list("culprit__sha", "status")
print(json.dumps({"events": list(events), "mails": list(mails), "states": list(states)}))
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one judged event: right, wrong, missed, replaced or still thin."""

    name: str
    judged: dict[str, Any]


def outcomes(judged: Sequence[dict[str, Any]], found: set[tuple[str, str, str]]) -> list[Outcome]:
    """Compare judged events with (Message-ID, kind, culprit) of those that were drawn now."""
    result = []
    for each in judged:
        key = (each["msgid"], each["culprit"])
        made = (key[0], each["event"], key[1]) in found
        instead = (key[0], each["should_be"], key[1]) in found
        if each["verdict"] == "right":
            name = "right" if made else "missed"
        elif each["verdict"] == "wrong":
            name = "wrong" if made else "not made any more"
        else:
            name = "replaced" if instead and not made else "beside a better one" if instead else "thin"
            name = name if made or instead else "not made any more"
        result.append(Outcome(name, each))
    return result


def read_bundle(folder: Path) -> dict[str, Any]:
    """Read the dense epoch into an empty database, and return what it holds."""
    epoch, var = folder / "cgroups.git", folder / "var"
    subprocess.run(["git", "clone", "-q", "--mirror", BUNDLE, epoch], check=True)
    manage(var, "migrate", "--verbosity=0")
    manage(var, "read", str(epoch))
    found: dict[str, Any] = json.loads(manage(var, "shell", "--no-imports", stdin=DUMP)[0].splitlines()[-1])
    return found


def main() -> None:
    if not BUNDLE.exists():
        sys.exit(f"the real archive is not on this machine (expected in {BUNDLE})")
    judged = json.loads(JUDGED.read_text())
    with tempfile.TemporaryDirectory() as name:
        found = read_bundle(Path(name))
    all_outcomes = outcomes(judged, {tuple(each) for each in found["events"]})
    print(f"{len(found['events'])} events from {len(found['mails'])} mails:", dict(Counter(found["mails"])))
    print(f"{len(judged)} judged events:", dict(Counter(each.name for each in all_outcomes)))
    counts = Counter(each.name for each in all_outcomes)
    hand, good = "102 hand-judged events, a real epoch", counts["right"] + counts["missed"]
    share("events judged right that are made", counts["right"], good, hand, unseen=False)
    bad = [each for each in all_outcomes if each.judged["verdict"] == "wrong"]
    share("events judged wrong that are not", sum(each.name != "wrong" for each in bad), len(bad), hand, unseen=False)
    for each in all_outcomes:
        if each.name in ("wrong", "missed", "thin"):
            event = each.judged
            wanted = f"{event['event']} → {event['should_be']}"
            print(f"  {each.name:7}{wanted}: {event['subject'][:60]}: {event['quote'][:60]}")
    known = {(each["msgid"], each["event"], each["culprit"]) for each in judged}
    for message_id, kind, culprit in found["events"]:
        if (message_id, kind, culprit) not in known and kind != "reported":
            print(f"  not judged: {kind} of {culprit[:12]} from {message_id}")
    for culprit, text in found["states"]:
        print(f"{culprit[:12]} {text}")


if __name__ == "__main__":
    main()
