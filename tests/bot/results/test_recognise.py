"""Ingesting bisect results: what is accepted, what is rejected, and the error messages."""

from __future__ import annotations

import copy
import io
import json
import os
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st

from bot.results.formats import checks, perf_bisect_result
from bot.results.intake import take_dropped
from bot.results.recognise import Input, read_path, read_stream
from bot.results.storage import Receipt, Taken, take_all
from bot.results.values import RejectedInput
from tests.conftest import ROOT
from tests.support.world import World
from tracker.models import BisectResult, Finding, OutgoingMail, Report, Tree

RESULT = json.loads((ROOT / "fixtures" / "results" / "01-mm-vmscan.json").read_text())
OURS = json.loads((ROOT / "bot" / "results" / "formats" / "schemas" / "perf-bisect-result-1.schema.json").read_text())


def read(raw: bytes) -> list[Input]:
    return list(read_stream(io.BytesIO(raw), "in"))


def rejection(raw: bytes) -> str:
    (only,) = read(raw)
    assert only.result is None
    assert only.rejection
    assert "\n" not in str(only.rejection)
    return str(only.rejection)


def changed(pointer: str, value: Any) -> bytes:
    """The good result with one place changed; DELETE takes it away."""
    result = copy.deepcopy(RESULT)
    *path, last = [int(step) if step.isdigit() else step for step in pointer.strip("/").split("/")]
    node: Any = result
    for step in path:
        node = node[step]
    if value is DELETE:
        del node[last]
    else:
        node[last] = value
    return json.dumps(result).encode()


DELETE = object()
MEASURED = "/measurements/0"


@pytest.mark.parametrize(
    ("pointer", "value", "expected"),
    [
        ("/schema", "perf-bisect-result/2", 'in, /schema: "perf-bisect-result/1" was expected'),
        ("/id", DELETE, 'in: "id" is a required property'),
        ("/good/sha", "HEAD", 'in, /good/sha: "HEAD" does not match'),
        ("/first_bad", DELETE, 'in: "first_bad" is a required property'),
        ("/first_bad/author/email", "nobody", 'in, /first_bad/author/email: "nobody" is not a "email"'),
        ("/first_bad/subject", "two\nlines", 'in, /first_bad/subject: "two\\nlines" does not match'),
        ("/created_at", "yesterday", "in, /created_at: expected a date and time (RFC 3339), found 'yesterday'"),
        ("/created_at", "2026-03-01", "in, /created_at: expected a date and time"),
        ("/machine/cpus", 0, "in, /machine/cpus: 0 is less than the minimum of 1"),
        ("/machine/cpus", 10**30, "in, /machine/cpus: 1000000000000000000000000000000 is greater than the maximum"),
        ("/test/params/nr_task", 50, 'in, /test/params/nr_task: 50 is not of type "string"'),
        ("/test/params/nr_task", "a\x00b", "in: text contains a NUL"),
        ("/test/params/nr_task", "\ud800", "in: text contains a NUL or a lone surrogate"),
        ("/measurements", [], "in, /measurements: None of [] "),
        (f"{MEASURED}/good/samples", DELETE, "in, /measurements/0/good: "),
        (f"{MEASURED}/good/samples", [], "in, /measurements/0/good/samples: [] "),
        (f"{MEASURED}/good/samples", [1, "2"], 'in, /measurements/0/good/samples/1: "2" is not of type "number"'),
        (
            f"{MEASURED}/good/samples",
            [10**400],
            "in, /measurements/0/good/samples: expected numbers up to 1e308",
        ),
        (f"{MEASURED}/good/samples", [1.0] * 100_001, "expected at most 100000 samples, found 100001"),
        (f"{MEASURED}/direction", DELETE, 'in, /measurements/0: "direction" is a required property'),
        (f"{MEASURED}/role", "kpi", "in, /measurements: "),
    ],
)
def test_a_wrong_result_is_refused_where_it_is_wrong(pointer: str, value: Any, expected: str) -> None:
    assert expected in rejection(changed(pointer, value))


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"", "in, column 1: not JSON"),
        (b"{", "not JSON"),
        (b'{\n "a": 1\n "b": 2}', "in, line 3 column 2: not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'{"a": NaN}', "expected a finite number, found NaN"),
        (b'{"a": -Infinity}', "expected a finite number, found -Infinity"),
        (b'{"a": 1e999}', "expected a finite number, found 1e999"),
        (b'{"a": 1, "a": 2}', "duplicate key 'a'"),
        (b'{"a": "\xff"}', "expected UTF-8, found the byte 0xff at offset 7"),
        (b"3", 'in: 3 is not of type "object"'),
        (b"9" * 5000, "not JSON"),
    ],
)
def test_what_is_no_json_is_refused_in_a_line(raw: bytes, expected: str) -> None:
    assert expected in rejection(raw)


def test_a_huge_line_is_refused_and_the_next_one_taken(tmp_path: Path) -> None:
    good = json.dumps(RESULT).encode() + b"\n"
    file = tmp_path / "results.jsonl"
    huge = b'{"log": "' + b"x" * (checks.MAX_BYTES + 1_000_000) + b'"}\n'
    file.write_bytes(huge + good + huge + good)
    one, two, three, four = read_path(file)
    assert two.result
    assert four.result
    for line, each in ((1, one), (3, three)):
        assert f"line {line}: expected at most 67,108,864 bytes" in str(each.rejection)


def test_one_object_an_array_and_lines_are_the_same() -> None:
    indented = json.dumps(RESULT, indent=1).encode()
    line = json.dumps(RESULT).encode()
    (alone,) = read(indented)
    assert [each.result for each in read(b"[" + indented + b",\n" + line + b"]")] == [alone.result] * 2
    assert [each.result for each in read(line + b"\n\n" + line + b"\n")] == [alone.result] * 2


def test_means_without_samples_are_enough() -> None:
    (one,) = read(changed(f"{MEASURED}/good", {"mean": 100.0, "stddev": 2.5, "n": 4}))
    assert one.result
    old = one.result.runs[0].measurements[0].old
    assert (old.mean, old.stddev_pct, old.n) == (100.0, 2.5, 4)


def test_our_schema_says_what_the_published_one_says(shared: Path) -> None:
    published = json.loads((shared / "bisect-result" / "perf-bisect-result-1.schema.json").read_text())
    example = json.loads((shared / "bisect-result" / "example.json").read_text())
    validators = [jsonschema.Draft202012Validator(each) for each in (published, OURS)]
    for path in [(), *((key,) for key in example), ("test", "suite"), ("measurements", 0, "good"), ("tree", "name")]:
        for value in (None, 7, "x\ny", [], {}):
            result = copy.deepcopy(example)
            node: Any = result
            for step in path[:-1]:
                node = node[step]
            if path:
                node[path[-1]] = value
            assert validators[0].is_valid(result) == validators[1].is_valid(result), (path, value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_a_result_or_a_refusal(value: Any) -> None:
    for each in read(json.dumps(value).encode()):
        assert each.rejection or each.result


@given(st.sampled_from(sorted(RESULT)), JSON)
def test_any_json_in_any_place_is_a_result_or_a_refusal(key: str, value: Any) -> None:
    for each in read(json.dumps({**RESULT, key: value}).encode()):
        assert each.rejection or each.result


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_in_a_line(raw: bytes) -> None:
    for each in read(raw):
        assert each.rejection
        assert "\n" not in str(each.rejection)


# --- into the database ---


def test_a_result_becomes_a_report_with_its_numbers(world: World) -> None:
    (one,) = read_path(ROOT / "fixtures" / "results" / "04-net-relay.json")
    assert one.result
    (receipt,) = take_all([one.result], world.now, {})
    assert isinstance(receipt, Receipt)
    assert receipt.taken is Taken.NEW
    report = Report.objects.get()
    assert (report.verdict, report.subsystem, report.state) == ("regression", "net/relay", "no_response")
    headline = report.findings.get(headline=True)
    good = json.loads(one.result.payload)["measurements"][0]["good"]["samples"]
    bad = json.loads(one.result.payload)["measurements"][0]["bad"]["samples"]
    raw = 100 * (sum(bad) / len(bad) - sum(good) / len(good)) / (sum(good) / len(good))
    assert headline.change_pct_raw == pytest.approx(raw)
    assert headline.change_pct == pytest.approx(-raw)  # a latency: more is worse
    other = report.findings.get(headline=False)
    assert (other.metric.name, other.verdict) == ("net-pingpong.frames_per_sec", "improvement")


def test_the_same_result_again_is_no_news(world: World) -> None:
    result = world.result("b" * 40, "mm: a")
    assert [each.taken for each in world.ingest(result, result)] == [Taken.NEW, Taken.DUPLICATE]
    assert (BisectResult.objects.count(), Finding.objects.count()) == (1, 1)


def test_another_content_under_the_same_key_is_refused_with_the_difference(world: World) -> None:
    world.ingest(world.result("b" * 40, "mm: a"))
    with pytest.raises(RejectedInput, match=r"differs at /machine/cpus, /tree/name"):
        world.ingest(
            world.result(
                "b" * 40,
                "mm: a",
                machine={"id": "lab7-m1", "cpus": 65},
                tree={"name": "next", "branch": "master"},
            )
        )
    assert BisectResult.objects.count() == 1


def test_a_second_result_for_a_culprit_joins_its_report(world: World) -> None:
    world.ingest(
        world.result("b" * 40, "mm: a"),
        world.result("b" * 40, "mm: a", id="second", machine={"id": "lab7-m2", "cpus": 8}),
    )
    report = Report.objects.get()
    assert report.findings.count() == 2
    assert report.findings.get(headline=True).machine.name == "lab7-m1"


def test_the_command_says_a_line_an_input_and_fails_for_a_refusal(world: World, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(world.result("b" * 40, "mm: a")))
    (tmp_path / "b.json").write_text("{")
    out, errors = io.StringIO(), io.StringIO()
    with pytest.raises(CommandError, match="1 of 2 refused"):
        call_command("ingest", str(tmp_path), stdout=out, stderr=errors)
    assert "new: " in out.getvalue()
    assert "1 new, 1 refused; 1 mail composed" in out.getvalue()
    assert errors.getvalue().startswith(f"refused: {tmp_path}/b.json")
    assert OutgoingMail.objects.get().state == "composed"  # nothing leaves unapproved unless it is set so


def test_a_missing_file_is_refused(db: None) -> None:
    errors = io.StringIO()
    with pytest.raises(CommandError):
        call_command("ingest", "/nowhere.json", stderr=errors)
    assert errors.getvalue() == "refused: /nowhere.json: No such file or directory\n"


def test_the_drop_directory(world: World, tmp_path: Path) -> None:
    drop = tmp_path / "drop"
    drop.mkdir()
    (drop / "good.json").write_text(json.dumps(world.result("b" * 40, "mm: a")))
    (drop / "bad.json").write_text("{")
    (drop / ".unfinished.json").write_text("{")
    (drop / "young.json").write_text("{")
    for name in ("good.json", "bad.json", ".unfinished.json"):
        os.utime(drop / name, (1, 1))
    assert take_dropped(drop, [], world.now) == 1
    assert sorted(str(each.relative_to(drop)) for each in drop.rglob("*") if each.is_file()) == [
        ".unfinished.json",
        "done/good.json",
        "refused/bad.json",
        "refused/bad.json.reason",
        "young.json",
    ]
    assert "not JSON" in (drop / "refused" / "bad.json.reason").read_text()


def test_a_file_is_left_to_who_still_writes_to_it(world: World, tmp_path: Path) -> None:
    drop = tmp_path / "drop"
    drop.mkdir()
    text = json.dumps(world.result("b" * 40, "mm: a"))
    with (drop / "slow.json").open("w") as file:
        file.write(text[:100])
        file.flush()
        os.utime(drop / "slow.json", (time.time() - 5, time.time() - 5))  # the network hung for five seconds
        assert take_dropped(drop, [], world.now) == 0
        file.write(text[100:])
    os.utime(drop / "slow.json", (time.time() - 5, time.time() - 5))
    assert take_dropped(drop, [], world.now) == 1
    with (drop / "dead.json").open("w") as file:
        file.write(text[:100])
        file.flush()
        os.utime(drop / "dead.json", (1, 1))  # whoever has it open has forgotten it
        assert take_dropped(drop, [], world.now) == 0
    assert (drop / "refused" / "dead.json").exists()


def test_a_log_and_its_samples_are_dropped_and_moved_together(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.bot.results.formats.test_bisect_log import CSV, LOG

    drop = tmp_path / "drop"
    drop.mkdir()
    (drop / "a.csv").write_text(CSV)
    os.utime(drop / "a.csv", (1, 1))
    assert take_dropped(drop, [], world.now) == 0  # its log may be on its way
    assert (drop / "a.csv").exists()
    monkeypatch.setattr("bot.results.intake._PARTNER_WAIT", 0)
    assert take_dropped(drop, [], world.now) == 0  # alone it is refused in the end
    assert "expected its git bisect log" in (drop / "refused" / "a.csv.reason").read_text()
    for name, text in (("b.csv", CSV), ("b.log", LOG)):
        (drop / name).write_text(text)
        os.utime(drop / name, (1, 1))
    assert take_dropped(drop, [], world.now) == 1
    assert sorted(each.name for each in (drop / "done").iterdir()) == ["b.csv", "b.log"]


def test_a_link_in_the_drop_directory_is_refused_and_never_followed(world: World, tmp_path: Path) -> None:
    drop = tmp_path / "drop"
    drop.mkdir()
    (tmp_path / "secret.json").write_text("{}")
    (drop / "a.json").symlink_to(tmp_path / "secret.json")
    (drop / "b").symlink_to(tmp_path)
    for name in ("a.json", "b"):
        os.utime(drop / name, (1, 1), follow_symlinks=False)
    assert take_dropped(drop, [], world.now) == 0
    assert "a symbolic link: put the file itself here" in (drop / "refused" / "a.json.reason").read_text()
    assert (drop / "refused" / "b").is_symlink()
    assert (tmp_path / "secret.json").exists()


@pytest.mark.parametrize("name", ["done", "refused"])
def test_a_link_in_the_place_of_our_folders_is_not_followed(world: World, tmp_path: Path, name: str) -> None:
    drop, elsewhere = tmp_path / "drop", tmp_path / "elsewhere"
    drop.mkdir()
    elsewhere.mkdir()
    (drop / name).symlink_to(elsewhere)
    text = json.dumps(world.result("b" * 40, "mm: a")) if name == "done" else "{}"
    (drop / "a.json").write_text(text)
    os.utime(drop / "a.json", (1, 1))
    take_dropped(drop, [], world.now)
    assert not list(elsewhere.iterdir())
    assert (drop / "a.json").exists(), "it waits until an operator has looked"


# --- the fast ways say what the slow ones say ---


@given(JSON)
def test_the_fast_decoder_gives_what_the_careful_one_gives(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        plain = checks._decode_plain(text)
        if plain is not None:
            assert repr(plain) == repr(checks._decode_carefully(text, "in"))


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}',
        '{"a": {"b": 1}, "a": "x:y"}',
        '{"a:b": 1, "a:b": "::"}',
        '{"a": 1, "a": "\\u003a"}',
        '{"a": "\\u003a", "\\u0061": 2}',
        '[{"a": 1}, {"b": 1, "b": 1}]',
        "[1e999]",
        "[" + "9" * 400 + "]",
        "[12345678901234567890123]",
        "[-18446744073709551616]",
        " -9223372036854775809",
        "[NaN]",
        "[1,]",
        '["\\ud800"]',
        "null",
    ],
)
def test_the_fast_decoder_leaves_every_trap_to_the_careful_one(text: str) -> None:
    assert checks._decode_plain(text) is None


@given(st.sampled_from(sorted(RESULT)), JSON)
def test_the_schema_means_to_another_library_what_it_means_to_ours(key: str, value: Any) -> None:
    result = {**RESULT, key: value}
    try:
        perf_bisect_result.SCHEMA.check(result, "in")
        valid = True
    except RejectedInput:
        valid = False
    assert valid == jsonschema.Draft202012Validator(OURS).is_valid(result)


def test_the_address_of_a_tree_is_learned_when_it_is_told(world: World) -> None:
    url = "https://git.example.org/linux.git"
    world.ingest(
        world.result("b" * 40, "mm: a"),
        world.result("c" * 40, "mm: b", id="2", tree={"name": "linus", "branch": "master", "url": url}),
    )
    assert Tree.objects.get(name="linus").url == url
