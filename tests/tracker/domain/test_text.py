"""Links out of our pages: whatever a tree's URL or a mail holds, they stay links of one kind."""

from __future__ import annotations

from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.domain.text import LONGEST, commit_url, reply_url

SHA = "3b1f0c9d2e44"


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ("https://git.kernel.org/pub/scm/tip.git", f"https://git.kernel.org/pub/scm/tip.git/commit/?id={SHA}"),
        ("git://git.kernel.org/pub/scm/tip.git/", f"https://git.kernel.org/pub/scm/tip.git/commit/?id={SHA}"),
        (
            "ssh://git@gitlab.freedesktop.org/drm/kernel.git",
            f"https://gitlab.freedesktop.org/drm/kernel/-/commit/{SHA}",
        ),
        ("https://github.com/intel-lab-lkp/linux", f"https://github.com/intel-lab-lkp/linux/commit/{SHA}"),
        ("https://github.com.evil.example/a/b", ""),
        ("https://evil.example/github.com/a", ""),
        ("javascript:alert(1)//github.com/a/b", ""),
        ('https://github.com/a/b" onclick="x', ""),
        ("/srv/linux.git", ""),
        ("", ""),
    ],
)
def test_the_page_of_a_commit(tree: str, expected: str) -> None:
    assert commit_url(tree, SHA) == expected


@given(st.text(max_size=80), st.text(max_size=50))
def test_nothing_else_becomes_a_link(tree: str, sha: str) -> None:
    found = commit_url(tree, sha)
    assert not found or (found.startswith(("https://", "http://")) and not set(found) & set("\"'<> \n"))


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


@given(TEXT, st.lists(st.emails(), max_size=80), st.emails(), TEXT)
def test_an_answer_stays_one_mail(subject: str, cc: list[str], to: str, message_id: str) -> None:
    """No header can be added: every value is quoted, and the link has a length that mail programs take."""
    link = reply_url(to, cc, subject, message_id)
    fields = parse_qs(urlsplit(link).query, keep_blank_values=True)
    assert set(fields) <= {"In-Reply-To", "Subject", "Cc"}
    assert fields["Subject"] == [subject]
    assert fields["In-Reply-To"] == [f"<{message_id}>"]
    assert unquote(urlsplit(link).path) == to
    assert "Cc" not in fields or len(link) <= LONGEST
