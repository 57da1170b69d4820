"""The conventions of our mail: subject form, lists, limits, Message-IDs, threading, directives. Pure.

A Message-ID is fixed when a mail is composed, readable and unique. A mail replies to a patch or to our own report, or
begins a thread. Foreign text is escaped where programs would act on it, always at the start of a line: b4 collects
`Tested-by:` from replies, regzbot reads `#regzbot`, other robots `commit:`.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from bot.mail.message import is_message_id
from bot.mail.patches import find_links
from bot.mail.settings import BotSettings

WIDTH = 78  # columns of our text: fits an 80-column terminal when quoted once


class SubjectForm(StrEnum):
    """The subject forms that the lists know."""

    SEED = "seed"  # [LKP] [mm/slub] 3b1f0c9d2e: -12.4% regression
    METRIC = "metric"  # [LKP] [mm/slub] 3b1f0c9d2e: vm-scan.ops_per_sec -12.4% regression
    TREE = "tree"  # [linus:master] [mm/slub] 3b1f0c9d2e: vm-scan.ops_per_sec 12.4% regression


class Attached(StrEnum):
    """What may be attached, where the settings ask for it."""

    JOB = "job"
    SCRIPT = "script"


@dataclass(frozen=True, slots=True)
class Conventions:
    """The conventions of mail.

    `lkml`: the list that every report goes to; `tree_lists`: more lists, by the name or role of the tree;
    `regzbot`: regzbot's list, "" to leave it out; `reproduce`: a command template with {suite}, {params},
    {machine} and {sha}; `oldest`: the maximum age of a culprit.
    """

    subject: SubjectForm = SubjectForm.SEED
    lkml: str = ""
    tree_lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    regzbot: str = ""
    reproduce: str = ""
    attach: frozenset[Attached] = frozenset()
    most_people: int = 40
    oldest: timedelta = timedelta(days=365)


DEFAULT = Conventions()


# --- Message-IDs ---


def message_id(at: datetime, tag: str, settings: BotSettings, purpose: str = "") -> str:
    """Return an id like 202603110412.7d3e91c0-perfbot@bot.example.org: when, about which report, from whom.

    `purpose`: what the mail is about, if it is not the report itself; mails composed in the same minute still get
    different ids.
    """
    local, _, domain = settings.address.partition("@")
    mark = f"a{hashlib.sha256(purpose.encode('utf-8', 'replace')).hexdigest()[:12]}." if purpose else ""
    return f"{at:%Y%m%d%H%M}.{mark}{tag[:8]}-{local}@{domain}"


# --- Threading ---

MOST = 30  # ids in References: the first one and the last others (RFC 5322 section 3.6.4 sets no limit)
_PATCH_LINK = re.compile(r"https?://patch\.msgid\.link/", re.I)
_ABOUT = ("closes", "reported-by", "bug")


@dataclass(frozen=True, slots=True)
class ThreadPosition:
    """The Message-ID that a mail replies to, "" for none, and its References, which end with it."""

    in_reply_to: str = ""
    references: tuple[str, ...] = ()


NEW_THREAD = ThreadPosition()


def reply_position(message_id: str, references: Iterable[str] = ()) -> ThreadPosition:
    """Return the threading of a reply to a mail, which has these References itself."""
    if not is_message_id(message_id):
        return NEW_THREAD
    above = tuple(
        dict.fromkeys(reference for reference in references if is_message_id(reference) and reference != message_id)
    )
    if len(above) >= MOST:
        above = (above[0], *above[-(MOST - 2) :])
    return ThreadPosition(message_id, (*above, message_id))


def patch_mail(trailers: Iterable[tuple[str, str]]) -> str:
    """Return the Message-ID of the patch that became a commit, from its `Link:`; "" if there is none.

    Maintainers' tools add it as the last Link when they apply a patch (Documentation/maintainer/configure-git.rst). A
    Link right after `Reported-by:` or `Closes:` points to a bug report, and one with "[1]" to a reference of the text.
    """
    mail_id = ""
    before = ""
    for tag, value in trailers:
        if tag.strip().lower() == "link":
            ids = [link.message_id for link in find_links(value) if link.message_id]
            if ids and _PATCH_LINK.match(value.strip()):
                return ids[0]
            if ids and before not in _ABOUT and not re.search(r"[\[#]\s*\d", value.partition(" ")[2]):
                mail_id = ids[0]
        before = tag.strip().lower()
    return mail_id


# --- Directives ---

_OBEYED = re.compile(
    r"#\w|[a-z][a-z-]{0,40}-by\s*:|(?:closes|link|fixes|cc|bug|message-id|reverts|commit|from|subject|date)\s*:", re.I
)


def is_directive(line: str) -> bool:
    """Return whether a program may act on the line."""
    return _OBEYED.match(line) is not None


def escape_directives(body: str, own: Collection[str]) -> str:
    """Return the body with a space before every line that programs act on, except for our `own` lines."""
    return "\n".join(f" {line}" if is_directive(line) and line not in own else line for line in body.split("\n"))
