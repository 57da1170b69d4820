"""Parts of a report's page: the chart of the bisection, mails with their readings, a machine's track record."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st
from kcidb_io.schema import LATEST

from bot.archives.files import read_mbox
from bot.archives.reader import read_source
from bot.archives.sources import open_sources
from bot.mail.settings import BotSettings
from tests.support.world import DANA, START, World, message_id
from tracker.charts import chart, groups_of, measured_later, paths, read_payload, side
from tracker.domain.text import round_values
from tracker.domain.track_record import Course, record
from tracker.models import Commit, Finding, Message, Metric, Report
from tracker.pages.report import ThreadMail, _as_tree, by_importance, mboxrd, packed, passages
from tracker.pages.report_json import kcidb_json
from tracker.services.report_summary import HEIGHT, spark, urgency
from tracker.templatetags.words import as_markdown, noise_bar

# --- Parts of a report's page: the chart of the bisection, mails with their readings, a machine's track record ---

TESTED = [  # in the order of the tests: halving what is left
    ("a" * 40, "bad", [8.0]),
    ("b" * 40, "skip", [9.0]),
    ("1" * 40, "good", [10.1]),
    ("2" * 40, "good", [10.0]),
    ("3" * 40, "bad", [8.1]),
    ("f" * 40, "good", [10.1]),  # the parent again
    ("e" * 12, "bad", [8.3]),  # the culprit again
]
STEPS = {"bisect": {"steps": [dict(zip(("sha", "verdict", "samples"), each, strict=True)) for each in TESTED]}}
DAY = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_bisection_is_drawn_in_gits_order_each_commit_once() -> None:
    later = measured_later("c" * 10, "m", [{"metric": "other", "new": 1}, {"metric": "m", "new": 9.5, "verdict": "x"}])
    good, bad = side("parent", "good", [10, 10.2]), side("culprit", "bad", [8.1, 8.2])
    groups = groups_of(good, bad, STEPS, ("f" * 40, "e" * 40), later)
    assert [group.name[:7] for group in groups] == [
        *("1" * 7, "2" * 7, "b" * 7, "parent", "culprit", "3" * 7, "a" * 7, "c" * 7)
    ]
    drawn = chart(groups, "1/s")
    assert drawn is not None
    assert "; parent (good): 10.1 ± 0.1 1/s, n = 2; culprit (bad)" in drawn.description
    assert [column.x for column in drawn.columns] == sorted(column.x for column in drawn.columns)
    assert drawn.columns[3].mean < drawn.columns[4].mean  # more is higher up
    assert [label for _, label in drawn.grid] == ["8", "8.5", "9", "9.5", "10"]
    assert chart(groups[:1]) is None


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.83, 10.2, [2, 4, 6, 8, 10]),
        (99.1, 100.4, [99.5, 100]),
        (70_412, 81_004, [72_000, 74_000, 76_000, 78_000, 80_000]),
        (-3, 3, [-2, 0, 2]),
        (5, 5, [5]),
        (0, 1e-300, [0]),
    ],
)
def test_axes_have_round_numbers(low: float, high: float, expected: list[float]) -> None:
    assert round_values(low, high) == expected


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
def test_any_axis_has_a_few_numbers_within_it(one: float, other: float) -> None:
    low, high = min(one, other), max(one, other)
    found = round_values(low, high)
    assert 1 <= len(found) <= 6
    slack = 1e-9 * max(abs(low), abs(high))
    assert all(low - slack <= each <= high + slack for each in found)
    assert found == sorted(found)


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["steps", "sha", "samples", "x"]), inner)
    ),
    max_leaves=12,
)


@given(JSON, st.lists(st.floats(), max_size=60), st.lists(st.floats(), max_size=60))
def test_any_payload_is_drawn_or_not(bisect: Any, good: list[float], bad: list[float]) -> None:
    drawn = chart(
        groups_of(
            *(side("parent", "good", good), side("culprit", "bad", bad)),
            {"bisect": bisect},
            ("a", ""),
            measured_later("x", "m", [bisect]),
        )
    )
    if drawn:
        assert all(0 <= y <= drawn.height for column in drawn.columns for _, y in column.dots)
    assert read_payload("{") == {}
    assert read_payload("[1]") == {}


@given(st.lists(st.floats(allow_nan=False), max_size=30), st.lists(st.floats(allow_nan=False), max_size=30))
def test_a_little_chart_stays_in_its_frame(old: list[float], new: list[float]) -> None:
    made = spark(old, new)
    heights = [int(each) for side in made.split("|") for each in side.split(",") if each]
    assert all(0 <= each <= HEIGHT for each in heights)
    good, bad, width = paths(made)
    assert (bool(good), bool(bad), width > 0) == (bool(made),) * 3


@given(st.booleans(), st.floats(allow_nan=False), st.none() | st.datetimes(timezones=st.just(UTC)))
def test_urgency_fits_its_column_and_blocking_comes_first(
    blocks: bool, weight: float, last_reply: datetime | None
) -> None:
    found = urgency(True, blocks, weight, last_reply)
    assert 0 <= found < 1 << 63
    assert (
        urgency(True, True, 0, DAY)
        > urgency(True, False, weight, last_reply)
        > urgency(False, blocks, weight, last_reply)
    )


def test_urgency_goes_by_effect_then_by_silence() -> None:
    assert urgency(True, False, 3.0, DAY) > urgency(True, False, 2.5, None)
    assert urgency(True, False, 3.0, DAY) > urgency(True, False, 3.0, DAY + timedelta(minutes=1))


@pytest.mark.parametrize(
    ("text", "quotes", "marked"),
    [
        ("I can reproduce it.", ["can reproduce"], ["can reproduce"]),
        ("I can\nreproduce it.", ["can reproduce"], ["can\nreproduce"]),
        ("one two three", ["two", "one two"], ["one two"]),
        ("one two three four", ["one two", "two three", "one"], ["one two three"]),
        ("one two one", ["one", "one"], ["one"]),
        ("a.c abc", ["abc"], ["abc"]),
        ("nothing", ["else", ""], []),
    ],
)
def test_the_words_that_were_relied_on_are_marked(text: str, quotes: list[str], marked: list[str]) -> None:
    found = passages(text, quotes)
    assert [each.text for each in found if each.marked] == marked
    assert "".join(each.text for each in found) == text


def letters(parents: Sequence[int]) -> list[ThreadMail]:
    """Mails of a thread, each with the number of the mail that it answers; itself or later ones are allowed, too."""
    return [
        ThreadMail(Message(pk=number, message_id=f"{number}@x", in_reply_to=f"{parent}@x"), (), (), cut=False)
        for number, parent in enumerate(parents)
    ]


def test_answers_stand_below_what_they_answer() -> None:
    tree = _as_tree(letters([99, 0, 0, 1, 98, 3]))
    assert [(mail.message.pk, mail.depth) for mail in tree] == [(0, 0), (1, 1), (3, 2), (5, 3), (2, 1), (4, 0)]
    assert not any(mail.is_folded for mail in tree)
    assert [mail.is_folded for mail in _as_tree(letters([99, *[0] * 8]))] == [False, *[True] * 8]


@given(st.lists(st.integers(0, 12), max_size=12))
def test_of_any_thread_each_mail_is_shown_once(parents: list[int]) -> None:
    tree = _as_tree(letters(parents))
    assert sorted(mail.message.pk for mail in tree) == list(range(len(parents)))


@given(st.text(), st.lists(st.text(max_size=5), max_size=4))
def test_no_letter_of_a_mail_is_lost(text: str, quotes: list[str]) -> None:
    assert "".join(each.text for each in passages(text, quotes)) == text


def test_an_mbox_can_be_read_again() -> None:
    mails = [b"Subject: a\r\n\r\nFrom here\r\n>From there\r\n", b"Subject: b\n\nx"]
    made = b"".join(mboxrd(mails))
    assert made.count(b"From mboxrd@z") == 2
    assert b"\n>From here\n>>From there\n\n" in made


BODIES = st.lists(
    st.one_of(st.sampled_from([b"", b"From here", b">From there", b"From a@b Thu Jan  1 00:00:00 1970"]), st.binary())
).map(b"\n".join)


@given(st.lists(BODIES, min_size=1, max_size=4))
def test_an_mbox_gives_back_every_byte(bodies: list[bytes]) -> None:
    mails = [b"Subject: a\n\n" + body.replace(b"\r", b"") + b"\n" for body in bodies]
    made = b"".join(packed(mboxrd(mails)))
    with tempfile.NamedTemporaryFile(suffix=".mbox.gz") as file:
        file.write(made)
        file.flush()
        assert [mail.raw for mail in read_mbox(file.name)] == mails


def test_notes_are_markdown_and_nothing_else() -> None:
    assert as_markdown("**yes** [it](https://x.example)") == (
        '<p><strong>yes</strong> <a href="https://x.example" rel="noopener noreferrer">it</a></p>'
    )
    for bad in (
        "<script>alert(1)</script>",
        "![x](http://x/y.png)",
        "[x](javascript:alert(1))",
        "<img src=x onerror=y>",
    ):
        made = as_markdown(bad)
        assert set(re.findall(r"<(\w+)", made)) <= {"p", "a"}, bad  # what was a tag is text
        assert not re.search(r"<[^>]*(?:javascript|onerror)", made), bad


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["[", "[a](", "![a](", "<a ", "*a ", "> ", "- ", "`", "\n- "])
def test_a_note_takes_no_longer_than_its_length(piece: str) -> None:
    begin = time.process_time()
    as_markdown(piece * (20_000 // len(piece)))
    assert time.process_time() - begin < 20  # another library took a minute


def test_a_record_says_how_it_went() -> None:
    def past(state: str, release: str = "v5.6", answer: float | None = None, verdict: str = "regression") -> Course:
        at = DAY + timedelta(days=answer) if answer is not None else None
        return Course(release, "", "", "", state, verdict, DAY, at, noise_pct=3.0)

    track_record = record(
        [
            past("fixed", answer=1),
            past("invalid", answer=3),
            past("no_response"),
            past("disputed", "v5.7", answer=8),
            past("no_action", verdict="improvement"),
        ]
    )
    total = track_record.total
    assert (total.reports, total.regressions, total.improvements, total.open, total.fixed) == (5, 4, 1, 2, 1)
    assert (total.false.number, total.false.of, total.false.pct) == (2, 3, pytest.approx(200 / 3))
    assert (total.response.median, total.response.slow) == (timedelta(days=3), timedelta(days=8))
    assert total.noise == 3.0
    assert [each.name for each in track_record.by_release] == ["v5.7", "v5.6"]
    empty = record([]).total
    assert (empty.response.median, empty.response.slow, empty.false.pct, empty.noise) == (None,) * 4


# --- A report's thread as an mbox: b4 finds the patch in it, and it reads back byte for byte ---

DIFF = """diff --git a/mm/a.c b/mm/a.c
index 7898192..6178079 100644
--- a/mm/a.c
+++ b/mm/a.c
@@ -1 +1 @@
-a
+b
"""


def test_b4_takes_the_patch_out_of_it(world: World, client: Client, tmp_path: Path) -> None:
    report = world.report("mm: scan more")
    text = f"Scan less.\n\nCloses: https://lore.kernel.org/r/{message_id(report)}\nSigned-off-by: {DANA}\n---\n{DIFF}"
    world.post(DANA, text, subject="[PATCH] mm: scan less")
    world.read()
    patch = Message.objects.get(subject="[PATCH] mm: scan less")
    plain = b"".join(client.get(f"/report/{report.culprit.sha[:10]}.mbox"))  # type: ignore[arg-type]
    packed = b"".join(client.get(f"/report/{report.culprit.sha[:10]}.mbox.gz"))  # type: ignore[arg-type]
    assert gzip.decompress(packed) == plain
    (tmp_path / "thread.mbox").write_bytes(plain)
    read = [mail.raw for mail in read_mbox(tmp_path / "thread.mbox")]
    assert patch.source is not None
    assert bytes(patch.source.raw).replace(b"\r\n", b"\n") in read
    command = [
        str(Path(sys.executable).with_name("b4")),
        "--offline-mode",
        "am",
        "-m",
        "thread.mbox",
        "-o",
        "out",
        patch.message_id,
    ]
    settings = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "GIT_CONFIG_COUNT": "1"}
    settings |= {"GIT_CONFIG_KEY_0": "b4.attestation-policy", "GIT_CONFIG_VALUE_0": "off"}
    done = subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    [made] = (tmp_path / "out").glob("*.mbx")
    assert DIFF in made.read_text(), done.stderr


# --- Regressions as KCIDB objects: its own library accepts them, whatever the reports say ---


def exported(capsys: pytest.CaptureFixture[str], **options: Any) -> dict[str, Any]:
    call_command("export", "kcidb", **options)
    found = json.loads(capsys.readouterr().out)
    LATEST.validate_exactly(found)
    return dict(found)


def test_a_report_is_an_issue_with_its_incidents(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    report = world.report("mm: scan more")
    found = exported(capsys, origin="lab7")
    [issue], [checkout] = found["issues"], found["checkouts"]
    assert issue["report_url"].endswith(f"/report/{report.culprit.sha}/")
    assert issue["comment"] == report.status
    assert checkout["git_commit_hash"] == report.culprit.sha
    assert {each["issue_id"] for each in found["incidents"]} == {issue["id"]} == {f"lab7:{report.culprit.sha}"}
    tests = {each["id"]: each for each in found["tests"]}
    assert {each["test_id"] for each in found["incidents"]} <= tests.keys()
    assert all(each["number"]["value"] for each in tests.values())
    before = issue["version"]
    world.commit("mm: scan less", f'Fixes: {report.culprit.sha[:12]} ("mm: scan more")')
    world.track()
    assert exported(capsys)["issues"][0]["version"] > before


@pytest.mark.parametrize("name", ["reports-dev", "reports-in-patch-threads-dev"])
def test_all_reports_of_real_mail_are_valid(
    db: None, shared: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    robots = frozenset({"lkp@intel.com", "oliver.sang@intel.com", "rong.a.chen@intel.com", "yujie.liu@intel.com"})
    (source,) = open_sources(str(shared / f"{name}.mbox"))
    settings = BotSettings(address="perfbot@bot.example.org", robots=robots, trust_policy="open")
    read_source(source, settings, START)
    found = exported(capsys)
    regressions = Report.objects.filter(verdict="regression").count()
    assert len(found["issues"]) == regressions > 0
    assert len(found["incidents"]) >= regressions


@given(st.text(), st.text(), st.from_regex(r"[0-9a-f]{7,64}", fullmatch=True))
def test_any_words_are_valid(title: str, status: str, sha: str) -> None:
    report = Report(culprit=Commit(sha=sha, title=title), verdict="regression", status=status)
    LATEST.validate_exactly(json.loads(json.dumps(kcidb_json([(report, [])], "lab", lambda path: f"https://x{path}"))))


@pytest.mark.parametrize("origin", ["", "Lab", "a b", "a:b"])
def test_an_origin_that_kcidb_would_refuse(db: None, origin: str) -> None:
    with pytest.raises(CommandError, match="--origin: expected"):
        call_command("export", "kcidb", origin=origin)


# --- Findings by importance ---


def finding(number: int, **columns: Any) -> Finding:
    return Finding(pk=number, verdict="regression", metric=Metric(name=f"m{number}"), **columns)


def test_findings_stand_by_how_far_they_are_out_of_the_noise() -> None:
    small = finding(1, change_pct_raw=-3.0, effect=12.0)
    headline = finding(2, change_pct_raw=-9.0, effect=2.0, headline=True)
    large_and_noisy = finding(3, change_pct_raw=-50.0, old_stddev_pct=25.0, new_stddev_pct=10.0)
    unknown = finding(4, change_pct_raw=-80.0)
    from_zero = finding(5, change_pct_raw=None, old_stddev_pct=1.0)
    rows = by_importance([unknown, large_and_noisy, from_zero, small, headline])
    assert rows == [headline, small, large_and_noisy, unknown, from_zero]
    assert large_and_noisy.times_noise == 2.0
    assert noise_bar(large_and_noisy).endswith("</svg> 2.0×")
    assert "unknown" in noise_bar(unknown)
    widths = [int(re.findall(r'rect class="w" width="(\d+)"', noise_bar(row))[0]) for row in (small, large_and_noisy)]
    assert widths == [44, 19]  # 12 pixels for each doubling of 1 + times
