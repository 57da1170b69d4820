"""The mail to Linus: at most forty lines of seventy-two columns, whose numbers are those of its rows."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from tests.support.rows import line as row_of_report
from tests.support.world import World
from tracker.documents.blocks import width
from tracker.documents.digest import COLUMNS, LINES, compose_cycle_mail
from tracker.documents.release_report import CycleRow, Merged
from tracker.domain.events import OPEN, Awaited, State
from tracker.models import Release

NOW = datetime(2026, 11, 26, tzinfo=UTC)
GOLDEN = """\
v9.1 has 2 open performance regressions of 3 reported. The worst is
-47.3% of fs-create.files_per_sec (ext9). 1 waits for its author, 1 for
over four weeks.

  -47.3%  ext9: delay the inode table
          27c5d5b77811 by Dana Brook, fs-create.files_per_sec
          fix failed, reported 5 w ago; waiting for Dana Brook
https://lore.kernel.org/r/1@bot.example

   +9.6%  lib/sort: choose the middle pivot
          0c8800d5d811 by Mira Novak, sort-many.elapsed_seconds
          fix proposed, reported 3 d ago; waiting for the lab

Fixed:
    -12.8%  mm/vmscan: walk cold folios first (v9.1-rc3)
"""


def line(sha: str, title: str, change: float | None, state: str, awaited: str = "author", **more: object) -> CycleRow:
    values: dict[str, object] = {
        "subsystem": title.partition(":")[0],
        "metric": "fs-create.files_per_sec",
        "author": "Dana Brook",
        "status": "",
        "reported_at": NOW - timedelta(days=36),
        "thread": "",
        **more,
    }
    return CycleRow(sha=sha.ljust(40, "1"), title=title, change=change, state=state, awaited=awaited, **values)  # type: ignore[arg-type]


def test_it_reads_as_a_maintainer_would_write_it() -> None:
    rows = [
        line(
            "27c5d5b778",
            "ext9: ext9: delay the inode table.",
            -47.3,
            "responded",
            thread="https://lore.kernel.org/r/1@bot.example",
        ),
        line(
            "0c8800d5d8",
            "lib/sort: choose the middle pivot",
            9.6,
            "fix_proposed",
            "reporter",
            metric="sort-many.elapsed_seconds",
            author="Mira Novak",
            reported_at=NOW - timedelta(days=3),
        ),
        line("f04628387e", "mm/vmscan: walk cold folios first", -12.8, "fixed", "nobody", fix_landing="v9.1-rc3"),
    ]
    subject, text = compose_cycle_mail("v9.1", rows, "https://perf.example.org/v9.1/", NOW)
    assert subject == "Performance regressions in v9.1: 2 open"
    assert text == GOLDEN.replace("fix failed", "answered")


@given(
    st.lists(
        st.builds(
            line,
            st.text("0123456789abcdef", min_size=12, max_size=12),
            st.text(max_size=200),
            st.none() | st.floats(-100, 1e6),
            st.sampled_from([state.value for state in State]),
            st.sampled_from([awaited.value for awaited in Awaited]),
            metric=st.text(max_size=150),
            thread=st.sampled_from(["", "https://lore.kernel.org/r/202611261413.6c9540df-perfbot@bot.example.org"]),
        ),
        max_size=60,
    )
)
def test_it_fits_and_counts_its_rows(rows: list[CycleRow]) -> None:
    _, text = compose_cycle_mail("v9.1", rows, "https://perf.example.org/v9.1/", NOW)
    lines = text.splitlines()
    assert len(lines) <= LINES
    assert all(width(each) <= COLUMNS for each in lines)
    still = sum(row.state in OPEN for row in rows)
    if rows:
        assert f"{still} open" in text
        more = re.search(r"^And (\d+) more:\nhttps://perf.example.org/v9.1/$", text, re.M)
        shown = len(re.findall(r"^ {10}[0-9a-f]{12}[ ,]", text, re.M))
        assert shown + (int(more[1]) if more else 0) == still


def test_a_subsystem_in_wide_letters_fits() -> None:
    _, text = compose_cycle_mail("v9.1", [line("27c5d5b778", "漢" * 40 + ": walk", -47.3, "responded")], "", NOW)
    assert all(width(each) <= COLUMNS for each in text.splitlines())


def test_the_command_prints_it(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.report("mm/vmscan: walk cold folios first")
    world.tag("v9.1-rc1")
    world.track()
    assert Release.objects.filter(version="v9.1").exists()
    call_command("report", "v9.1", "--for", "mail")
    out = capsys.readouterr().out
    assert out.startswith(
        "Subject: Performance regressions in v9.1: 1 open\n\nv9.1 has 1 open performance regression of 1"
    )
    assert "  -30.0%  mm/vmscan: walk cold folios first\n" in out


def test_what_blocks_the_release_stands_first_and_what_is_not_in_the_mainline_is_counted() -> None:
    rows = [
        line("27c5d5b778", "ext9: delay the inode table", -47.3, "responded"),
        line("0c8800d5d8", "io_uring: poll less", -9.6, "responded", merged=Merged.NOT_YET, blocks="v9.1"),
    ]
    _, text = compose_cycle_mail("v9.1", rows, "", NOW)
    said = " ".join(text.split())
    assert (
        "2 open performance regressions of 2 reported. 1 of them is not in the mainline. 1 blocks the release." in said
    )
    assert text.index("io_uring: poll less") < text.index("ext9: delay the inode table")
    assert "          blocks v9.1; answered, reported 5 w ago" in text


def test_what_nobody_knows_of_the_mainline_is_not_counted() -> None:
    rows = [line("27c5d5b778", "ext9: delay the inode table", -47.3, "responded", merged=Merged.UNTOLD)]
    _, text = compose_cycle_mail("v9.1", rows, "", NOW)
    assert "not in the mainline" not in text


def test_a_name_and_a_version_are_never_cut_off() -> None:
    author = "Maximiliane Mustermann-Oberhuber"
    rows = [
        line("27c5d5b778", "ext9: delay", -47.3, "working", author=author, blocks="v9.1"),
        line("0c8800d5d8", f"io_uring: {'poll ' * 20}", -9.6, "fixed", "nobody", fix_landing="v9.1-rc7"),
    ]
    _, text = compose_cycle_mail("v9.1", rows, "", NOW)
    assert f"waiting for {author}\n" in text
    assert "... (v9.1-rc7)\n" in text
    assert all(width(each) <= COLUMNS for each in text.splitlines())


def test_what_was_reverted_is_not_called_queued() -> None:
    _, text = compose_cycle_mail(
        "v9.1", [line("27c5d5b778", "ext9: delay the inode table", -47.3, "dropped", "nobody")], "", NOW
    )
    assert "ext9: delay the inode table (reverted)" in text


DIGEST = """\
Subject: Performance regressions in mm: 2 open

mm has 2 open performance regressions; 1 was closed in v6.12. The worst
is -47.3% of fs-create.files_per_sec (mm/vmscan). 2 wait for their
authors, 1 for over four weeks.

  -47.3%  mm/vmscan: walk cold folios first
          000000000200 by Dana Brook, fs-create.files_per_sec
          no answer yet, reported 5 w ago; waiting for Dana Brook

   -9.0%  mm: keep the page hot
          000000000300 by Lee Park, aim7.jobs-per-min
          answered, reported 3 d ago; waiting for Lee Park

Fixed:
    -12.8%  mm/slub: align the cache (v6.12-rc3)
"""


def test_a_digest_for_a_maintainer(db: None, capsys: pytest.CaptureFixture[str]) -> None:
    now = timezone.now()
    Release.objects.get_or_create(version="v6.12", defaults={"number": 60_012})
    mm = [
        (1, "mm/vmscan: walk cold folios first", "mm/vmscan", "no_response", -47.3, 40, "Dana Brook"),
        (2, "mm: keep the page hot", "mm", "responded", -9.0, 3, "Lee Park"),
        (3, "mm/slub: align the cache", "mm/slub", "fixed", -12.8, 50, "Lee Park"),
        (4, "fs: another", "fs", "no_response", -80.0, 50, "Lee Park"),
        (5, "mm/lru: fixed long ago", "mm/lru", "fixed", -80.0, 50, "Lee Park"),
    ]
    for number, title, subsystem, state, change, days, author in mm:
        report = row_of_report(
            number,
            title=title,
            subsystem=subsystem,
            state=state,
            change=change,
            weight=-change,
            reported_at=now - timedelta(days=days, hours=1),
            metric="aim7.jobs-per-min" if number == 2 else "fs-create.files_per_sec",
            merged_release="v5.1" if number in (1, 5) else "v6.12",
            fix_landing="v6.12-rc3" if state == "fixed" else "",
        )
        report.culprit.author_name = author
        report.culprit.save()
    call_command("digest", "v6.12", "--subsystem", "mm/")
    assert capsys.readouterr().out == DIGEST
    with pytest.raises(CommandError, match='no report is about the subsystem "net"'):
        call_command("digest", "v6.12", "--subsystem", "net")
    with pytest.raises(CommandError, match="without --hold"):
        call_command("digest", "v6.12", "--subsystem", "mm", "--hold")


def test_a_title_of_any_length_is_cut_at_once() -> None:
    """Measured again for each character that is cut, this takes minutes."""
    _, text = compose_cycle_mail(
        "v9.1", [line("27c5d5b778", "漢" * 200_000, -47.3, "responded", subsystem="mm")], "", NOW
    )
    assert max(map(width, text.splitlines())) <= COLUMNS
