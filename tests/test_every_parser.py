"""Every parser of hostile input takes junk: it returns a value or refuses, the same each time. `make fuzz` runs longer.

The parsers are found, not listed: the public functions of the pure rooms whose first argument is bytes, text or lines.
One whose other arguments can't be made from their annotations fails `test_no_parser_is_left_out` until it has a reason.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.http import QueryDict
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.archives.prefilter import Prefilter
from bot.mail.message import parse as parse_mail
from bot.mail.patches import Patch
from bot.mail.quoting import lines_in_context
from bot.mail.settings import BotSettings, TrustAnchors
from bot.replies.reading import SenderKind
from bot.results.formats.benchmark_files import File, RunContext
from bot.results.values import RejectedInput
from tracker.domain.events import InvalidInput
from tracker.pages.triage.filters import InvalidQuery, TriageQuery

ROOT = Path(__file__).resolve().parent.parent
ROOMS = (
    "bot/mail",
    "bot/replies",
    "bot/robot_reports",
    "bot/results/formats",
    "bot/archives/prefilter",
    "tracker/domain",
)
IDENTITY = BotSettings(address="perfbot@bench.example", robots=frozenset({"lkp@intel.com"}))
HOSTILE = {"str", "bytes", "Sequence[str]", "Iterable[str]", "Sequence[TextLine]", "Sequence[bytes]", "Any"}
WORDS = (
    "commit", "Fixes:", "Closes:", "Link:", "From:", "In-Reply-To:", "Subject:", "Content-Type:", "#lkp",
    "[PATCH v2 1/3]", "multipart/mixed;", "boundary=b", "--b", "base64", "=?utf-8?q?=41?=", "diff --git a/x b/x",
    "@@ -1 +1 @@", "---", "-- ", "%stddev", "± 3%", "-12.8%", "regression", "will-it-scale.per_thread_ops", "0:4",
    *("nan", "inf", "1e999", "9" * 40, "https://lore.kernel.org/r/", "<a@b>", "a@b.example", "0123456789ab"),
    "v6.12-rc3", "testcase:", "{", "}", '"', "\\", "|", ">", "> >", "On Mon, x wrote:", "\t", "\n", "\n\n", "\r\n",
    "\0", "\u200b", "\udcff", "ſ", "İ", "\u202e", "\u3000", "é",
)  # fmt: skip
TEXT = st.one_of(
    st.text(max_size=300),
    st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=8)), max_size=50).map(" ".join),
    st.lists(st.sampled_from(WORDS), max_size=50).map("".join),
)
BYTES = st.one_of(st.binary(max_size=300), TEXT.map(lambda text: text.encode("utf-8", "surrogatepass")))
KEYS = (
    "log",
    "version",
    "tests",
    "culprit",
    "format",
    "samples",
    "commit",
    "parent",
    "metrics",
    "builds",
    "kernel",
    "a",
)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(inner, st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(KEYS), inner, max_size=5))


JSON = _nested(_nested(_nested(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXT))))
LINES = st.lists(TEXT.map(lambda text: text.replace("\n", " ")), max_size=30)
BY_ANNOTATION: dict[str, st.SearchStrategy[Any]] = {
    "str": TEXT,
    "bytes": BYTES,
    "Any": JSON,
    "bool": st.booleans(),
    "SenderKind": st.sampled_from(SenderKind),
    "int": st.integers(1, 300),
    "float": st.floats(0, 2e9),
    "datetime": st.just(datetime(2026, 1, 1, tzinfo=UTC)),
    "Mapping[str, Sequence[str]]": st.dictionaries(st.sampled_from(["subsystem", "a"]), st.lists(TEXT, max_size=3)),
    "Sequence[str]": LINES,
    "Sequence[Any]": st.lists(JSON, max_size=6),
    "Iterable[str]": LINES,
    "Collection[str]": LINES,
    "Mapping[str, str]": st.dictionaries(TEXT, TEXT, max_size=4),
    "Sequence[TextLine]": TEXT.map(lines_in_context),
    "Sequence[MimeAttachment]": st.just(()),
    "Sequence[Patch]": st.lists(
        (TEXT.map(lambda title: f'Revert "{title}"') | TEXT).map(lambda title: Patch(title, "inline", ())), max_size=3
    ),
    "RunContext": st.builds(RunContext, commit=TEXT, machine=TEXT, params=st.dictionaries(TEXT, TEXT, max_size=2)),
    "Sequence[File]": st.lists(st.builds(File, TEXT, TEXT), max_size=2),
    "BotSettings": st.just(IDENTITY),
    "TrustAnchors": st.just(TrustAnchors(key=lambda name: "v=DKIM1; p=AAAA")),
    "ParsedMail": BYTES.map(parse_mail),
    "Headers": BYTES.map(lambda raw: parse_mail(raw).headers) if hasattr(parse_mail(b""), "headers") else st.nothing(),
}
EXEMPT = {
    "tracker.domain.timeline.what": "a kind of ours",
    "tracker.domain.timeline.tone": "a state of ours",
    "bot.mail.authentication.signed_by_developer": "called by authenticate, which is here",
    "bot.mail.authentication.verified_by_dkim": "called by authenticate",
    "bot.mail.authentication.verify": "called by authenticate; dkimpy raises what authenticate catches",
    "bot.replies.rules.notation.event_kind_of": "a word of ours",
    "bot.replies.rules.notation.expression": "phrases of ours; refuses others by ValueError",
    "bot.replies.rules.notation.words": "phrases of ours",
    "bot.results.formats.checks.pointer": "a path inside parsed JSON, made by jsonschema",
    "bot.results.formats.checks.canonical": "JSON that was parsed before",
    "tracker.domain.archived_reports.unpack": "bytes that we packed",
    "tracker.domain.lab_jobs.measured_metrics": "a result that was checked against its schema",
    "tracker.domain.curves.unpack": "bytes that we packed",
    "tracker.domain.text.tag_of": "a sha that was checked before",
    "tracker.domain.versions.points": "a version that we parsed before",
    "tracker.domain.versions.upcoming": "a version that we parsed before",
    "tracker.domain.track_record.group": "a name to print; tests/stories/test_measurements.py has any courses",
    "tracker.domain.tool_output.read": "a kind of ours; its parsers are here",
}


def as_written(annotation: object) -> str:
    """Return an annotation as the source has it, whether Python deferred it or not: "Sequence[str]"."""
    return (
        annotation
        if isinstance(annotation, str)
        else re.sub(r"(?:\w+\.)+(?=\w)", "", inspect.formatannotation(annotation))
    )


def found() -> Iterator[tuple[str, Callable[..., object]]]:
    """Yield the name and the function of each parser in the pure rooms."""
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            for function in vars(import_module(name)).values():
                if (
                    inspect.isfunction(function)
                    and function.__module__ == name
                    and not function.__name__.startswith("_")
                ):
                    first = next(iter(inspect.signature(function).parameters.values()), None)
                    if first is not None and as_written(first.annotation) in HOSTILE:
                        yield f"{name}.{function.__name__}", function


PARSERS = dict(found())


def arguments(function: Callable[..., object]) -> dict[str, str]:
    """Return the annotations of the arguments that must be given."""
    every = inspect.signature(function).parameters.values()
    return {each.name: as_written(each.annotation) for each in every if each.default is inspect.Parameter.empty}


def outcome(function: Callable[..., object], given_arguments: dict[str, Any]) -> object:
    """Return what a parser returns, a generator's items as a list, or the text of its refusal; its docstring says
    whether that is a ValueError.
    """
    says_so = "ValueError" in (function.__doc__ or "")
    refusals = (RejectedInput, InvalidInput, *([ValueError] if says_so else []))
    try:
        value = function(**given_arguments)
        return list(value) if isinstance(value, Generator) else value
    except refusals as error:
        refusal = str(error)
    assert refusal.isprintable(), "a refusal is one line"
    return refusal


def test_no_parser_is_left_out() -> None:
    unknown = {
        name: kinds
        for name, function in PARSERS.items()
        if name not in EXEMPT and not (kinds := set(arguments(function).values())) <= BY_ANNOTATION.keys()
    }
    assert unknown == {}, "add how to make such an argument, or the reason why the parser needs no junk"
    assert set(EXEMPT) <= set(PARSERS), "an exemption for nothing"
    assert len(PARSERS) > 100


@pytest.mark.fuzz
@pytest.mark.parametrize("name", sorted(set(PARSERS) - set(EXEMPT)))
def test_junk(name: str) -> None:
    function = PARSERS[name]

    @settings(max_examples=max(30, settings().max_examples // 4))
    @given(st.fixed_dictionaries({each: BY_ANNOTATION[kind] for each, kind in arguments(function).items()}))
    def holds(given_arguments: dict[str, Any]) -> None:
        assert repr(outcome(function, given_arguments)) == repr(outcome(function, given_arguments))

    holds()


@cache
def prefilters() -> tuple[Prefilter, Prefilter]:
    """Two that know the same; compiling the patterns of one takes a quarter of a second."""
    return Prefilter((), IDENTITY), Prefilter((), IDENTITY)


@given(BYTES, BYTES)
def test_the_prefilter_takes_junk(header: bytes, body: bytes) -> None:
    raw, (one, other) = header + b"\n\n" + body, prefilters()
    assert one.passes(raw) is other.passes(raw)
    assert one.look(raw) == other.look(raw)


FIELDS = ("q", "state", "subsystem", "metric", "order", "cursor", "verdict", "min", "max", "since", "author", "not")


@given(st.lists(st.tuples(st.one_of(st.sampled_from(FIELDS), TEXT), TEXT), max_size=6))
def test_the_query_of_a_table_is_understood_or_refused(pairs: list[tuple[str, str]]) -> None:
    data = QueryDict(mutable=True)
    for name, value in pairs:
        data.appendlist(name, value)
    with suppress(InvalidQuery, InvalidInput):
        TriageQuery.from_query(data, datetime(2026, 1, 1, tzinfo=UTC))
