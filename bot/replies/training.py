"""The written examples (fixtures/replies): invented replies with their meaning, as the mails that they stand for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.mail.identity import BotIdentity
from bot.replies.effect import Relation, Standpoint
from bot.replies.intents import Intent
from bot.replies.reading import Reading, understand
from tracker.domain.events import Role

FOLDER = Path(__file__).resolve().parents[3] / "fixtures" / "replies"
LAB = "lab@robots.example"
IDENTITY = BotIdentity(address="bot@perf.example", operators=frozenset({LAB}), trust_policy="open")
EFFECTS = (
    *("none", "responded", "working", "needs_info", "info_provided", "fix_proposed", "fix_confirmed", "fix_failed"),
    *("fix_queued", "dropped", "wontfix", "disputed", "invalid", "duplicate", "improvement_ack"),
)
ROLES = {
    "author": Role.AUTHOR,
    "maintainer": Role.MAINTAINER,
    "bot_operator": Role.REPORTER,
    "third_party": Role.THIRD_PARTY,
    "regression_tracker": Role.THIRD_PARTY,
}
_KEYS = {"role", "text", "quoted", "patch", "table", "candidate", "asked", "effect", "also", "evidence", "intents"}
_INTENTS = {*Intent, "off_topic"}
_DIFF = """
diff --git a/mm/x.c b/mm/x.c
--- a/mm/x.c
+++ b/mm/x.c
@@ -1,4 +1,4 @@ int f(void)
 {
-\treturn a;
+\treturn b;
 }
"""
_TABLE = """
         %stddev     %change         %stddev
             \\          |                \\
     41284 ±  3%      -9.1%      37527 ±  2%  will-it-scale.per_thread_ops
"""


@dataclass(frozen=True, slots=True)
class Example:
    """One reply: its text, the line quoted above it, who wrote it, and what it means (fixtures/replies/README.md)."""

    name: str  # file and line
    role: Role
    text: str
    quoted: str
    has_patch: bool
    effect: str
    also: tuple[str, ...]
    evidence: str

    @property
    def improvement(self) -> bool:
        return self.effect == "improvement_ack" or "improvement" in self.quoted

    def reading(self) -> Reading:
        """Return what a mail with this text says: the quoted line stands above the paragraph that decides."""
        text = self.text.replace("[diff]", _DIFF).replace("[table]", _TABLE)
        if self.has_patch and "[diff]" not in self.text:
            text += "\n" + _DIFF
        quote = "".join(f"> {line}\n" for line in (self.quoted or "testcase: x").split("\n"))
        above, paragraph = _at_paragraph(text, self.evidence) if self.quoted else ("", text)
        verdict = "improvement" if self.improvement else "regression"
        sender = LAB if self.role is Role.REPORTER else "somebody@dev.example"
        head = f"From: {sender}\nSubject: Re: [linus:master] [mm] 3b1f0c9d2e: a.b 12% {verdict}\nMessage-ID: <a@b>\n"
        kind = "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n"
        body = f"On Monday, the robot wrote:\n{above}{quote}\n{paragraph}\n"
        return understand(f"{head}{kind}\n{body}".encode("utf-8", "replace"), IDENTITY)

    def standpoint(self) -> Standpoint:
        return Standpoint(Relation.THREAD, self.role, self.improvement)


def _at_paragraph(text: str, evidence: str) -> tuple[str, str]:
    """Return a text up to the paragraph that holds the evidence, and from there on."""
    start = text.rfind("\n\n", 0, max(0, text.find(evidence))) + 2
    return (text[:start], text[start:]) if start > 1 else ("", text)


def load(folder: Path = FOLDER) -> Iterator[Example]:
    """Yield all examples. Raise ValueError with file and line for one that is malformed."""
    seen: dict[str, str] = {}
    for file in sorted(folder.glob("*.jsonl")):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            name = f"{file.name}:{number}"
            example = _parsed(name, line)
            if example.text in seen:
                raise ValueError(f"{name}: the same text as {seen[example.text]}; each example must be its own")
            seen[example.text] = name
            yield example


def _parsed(name: str, line: str) -> Example:
    try:
        given = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{name}: not JSON: {error}") from None
    if fault := _fault_of(given):
        raise ValueError(f"{name}: {fault}")
    return Example(
        name=name,
        role=ROLES[given["role"]],
        text=given["text"],
        quoted=given["quoted"],
        has_patch=given["patch"],
        effect=given["effect"],
        also=tuple(given["also"]),
        evidence=given["evidence"],
    )


def _fault_of(given: Mapping[str, object]) -> str:
    """Return what is wrong with an example, "" if nothing is."""
    if not isinstance(given, dict) or given.keys() != _KEYS:
        return f"the keys must be {', '.join(sorted(_KEYS))}"
    if given["role"] not in ROLES:
        return f"role {given['role']!r}: must be one of {', '.join(ROLES)}"
    named: Sequence[str] = [given["effect"], *given["also"]]
    if unknown := [each for each in named if each not in EFFECTS]:
        return f"effect {unknown[0]!r}: must be one of {', '.join(EFFECTS)}"
    if unknown := [each for each in given["intents"] if each not in _INTENTS]:
        return f"intent {unknown[0]!r}: must be one of those in bot/replies/intents.py"
    return "" if given["evidence"] in given["text"] else "the evidence is not in the text"
