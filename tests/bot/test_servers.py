"""Lists on servers, for real: Debian's public-inbox serves a small list over HTTP, IMAP and NNTP on loopback."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from bot.archive.dig import PatchMail, dig
from bot.archive.sources import open_sources
from bot.demo.story import DIFF
from bot.errors import Unreadable
from bot.identity import Identity

NEEDED = ("public-inbox-init", "public-inbox-index", "public-inbox-netd")
MISSING = [name for name in NEEDED if shutil.which(name) is None]
pytestmark = pytest.mark.skipif(
    bool(MISSING),
    reason=f"NOT TESTED: IMAP, NNTP and HTTP archives, since {', '.join(MISSING)} is missing: apt install public-inbox"
    " lei libplack-perl libdbd-sqlite3-perl libsearch-xapian-perl libinline-c-perl liburi-perl",
)
LKP = Identity(address="perfbot@bot.example.org", robots=frozenset({"lkp@intel.com"}), trust="open")
REPORT_ID = "202603110412.3b1f0c9d-lkp@intel.com"
DATE = "Date: Wed, 11 Mar 2026 10:15:00 +0000\n"


def reply(number: int, to: str, words: str) -> bytes:
    head = f"From: Dana Brook <dana@dev.example>\nSubject: [PATCH {version}] mm: a\n"
    head += f"Message-ID: <{version[:2]}@dev.example>\n{DATE.replace('Wed, 11', str(day))}{above}"
    return f"{head}\nWhy.\n---\n{DIFF}".encode()


@pytest.mark.parametrize(
    "served", [[posting("v1", 12), posting("v2 1/2", 13, "References: <cover@dev.example>\n")]], indirect=True
)
def test_a_patch_is_found_by_its_id(served: Served) -> None:
    """What `b4 dig` asks: the last version of a change under its title, with the letter above it."""
    asked = subprocess.run(["git", "patch-id", "--stable"], input=DIFF, capture_output=True, text=True, check=True)
    patch_id = asked.stdout.split()[0]
    assert dig(served.http, patch_id, "mm: a") == PatchMail("v2@dev.example", ("cover@dev.example",))
    assert dig(served.http, patch_id, "mm: b") is None
    assert dig(served.http, "0" * 40, "mm: a") is None
    assert dig(served.http, "not an id", "mm: a") is None


def test_a_password_is_never_shown() -> None:
    (source,) = open_sources("imaps://dana:s3cret@127.0.0.1:9/INBOX")
    assert source.name == "imaps://127.0.0.1:9/INBOX"
    with pytest.raises(Unreadable) as trouble:
        source.goal()
    assert "s3cret" not in str(trouble.value)
    with pytest.raises(Unreadable, match="expected imap") as trouble:
        open_sources("ftp://dana:s3cret@127.0.0.1/x")
    assert "s3cret" not in str(trouble.value)


@pytest.mark.parametrize(
    "address",
    ["imaps://joe:s3cr#et@host/INBOX", "imaps://joe:s3[cret@host/x", "imap4://joe:s3/cret@host/x", "nntp://host"],
)
def test_a_bad_address_is_one_line_without_its_password(address: str) -> None:
    with pytest.raises(Unreadable) as trouble:
        open_sources(address)
    assert "cr" not in str(trouble.value).replace("write", "")
    assert "\n" not in str(trouble.value)
