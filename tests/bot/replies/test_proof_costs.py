"""What the proofs cost on real replies: of those that a rule may act on by itself, how many still act."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bot.archives.sources import open_sources
from bot.explain import explain
from bot.mail.settings import BotSettings, TrustAnchors
from bot.replies.which_report import KnownReport

# The servers that took these mails in, for the lists and for the archive.
SERVERS = frozenset({"smtp.subspace.kernel.org", ".kernel.org", "mail.linux.dev", "mail.lfdr.de"})


def acting(shared: Path, name: str, settings: BotSettings) -> set[str]:
    """The mails of a file with an automatic effect."""
    known_file = shared / f"{name}.known.json"
    known = json.loads(known_file.read_text()) if known_file.exists() else []
    reports = [
        KnownReport(each["id"], each["culprit"], each["title"], (each["message_id"],), frozenset()) for each in known
    ]
    mails = [mail.raw for source in open_sources(str(shared / f"{name}.mbox")) for mail in source.mails("", "")]
    found = explain(mails, settings, reports)
    return {each["message_id"] for each in found if any(effect["mode"] == "auto" for effect in each["effects"])}


@pytest.mark.long
@pytest.mark.parametrize("name", ["threads-dev", "threads-dev-2"])
def test_not_one_in_twenty_is_lost_to_proofs(shared: Path, lkp: BotSettings, name: str) -> None:
    labelled = json.loads((shared / f"{name}.json").read_text())
    auto = {each["msgid"] for thread in labelled.values() for each in thread["replies"] if each["automation"] == "auto"}
    unproven = acting(shared, name, replace(lkp, trust_policy="verified")) & auto
    anchors = TrustAnchors(servers=SERVERS)
    proven = acting(shared, name, replace(lkp, trust_policy="verified", trust_anchors=anchors)) & auto
    assert len(unproven) > 20
    assert len(unproven - proven) * 20 <= len(unproven)
