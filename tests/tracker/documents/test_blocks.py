"""Documents in their three forms: same content, safe with hostile text, no wider than a terminal."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from html import unescape

import markdown as python_markdown
import nh3
import pytest
from django.template.loader import render_to_string
from hypothesis import given
from hypothesis import strategies as st

from tracker.charts import CycleChart, bars, cycle_chart, letters
from tracker.documents import blocks as markdown
from tracker.documents import blocks as text
from tracker.documents.blocks import (
    Block,
    Bullets,
    ChangeList,
    ChangeRow,
    ChartBlock,
    CycleFigure,
    Document,
    DocumentLink,
    Heading,
    Paragraph,
    Prose,
    TableBlock,
    as_json,
)
from tracker.domain.kernel_comparison import Box, Cell, lines
from tracker.domain.kernel_comparison import ComparedTest as Tried
from tracker.domain.statistics import SampleSummary
from tracker.domain.versions import CyclePoint, CycleStep

HOSTILE = '<script>alert(1)</script> | *a* _b_ `c` [d](javascript:x) # e & \x1b[31m \u202e "f"\n- g'
(LINE,) = lines(
    [
        (
            Tried("s", (), Box("m"), "s.ops", "", "higher"),
            [Cell(SampleSummary(50.0, None, 1)), Cell(SampleSummary(100.0, None, 1)), None],
        )
    ]
)
LABELS = ("v1", "v2", "v3")


def document(*blocks: Block) -> Document:
    return Document("A title", "", blocks)


def html(doc: Document) -> str:
    return render_to_string("documents/blocks.html", {"document": doc})


def chart() -> ChartBlock:
    drawn = bars(LINE, LABELS)
    assert drawn
    return ChartBlock(drawn, letters(LINE, LABELS))


def cycle() -> CycleChart:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    drawn = cycle_chart([CycleStep(CyclePoint("v9.1-rc1", at), 2, 0, 2), CycleStep(CyclePoint("now", at), 0, 1, 1)])
    assert drawn
    return drawn


# A block, and what stands in the text, the Markdown and the page.
ROWS: list[tuple[Block, str, str, str]] = [
    (Heading(2, "Results", "3"), "3. Results\n----------", "## 3. Results", '<h2 id="s3">3. Results</h2>'),
    (Heading(3, "All", aside="of v1"), "All of v1", "### All of v1", "<h3>All <small>of v1</small></h3>"),
    (Paragraph("a_b is *new*"), "a_b is *new*", r"a_b is \*new\*", "<p>a_b is *new*</p>"),
    (Prose("It is *new*."), "It is *new*.", "It is *new*.", "<p>It is <em>new</em>.</p>"),
    (
        Bullets(["one", DocumentLink("two", "/x/")]),
        "- one\n- two",
        "- one\n- [two](/x/)",
        '<li><a href="/x/">two</a></li>',
    ),
    (
        TableBlock("t", ("Name", "N"), [("a", "1"), (DocumentLink("bb", "/b/"), "22")], frozenset({1})),
        "Name   N\n----  --\na      1\nbb    22",
        "| Name | N |\n| --- | ---: |\n| a | 1 |\n| [bb](/b/) | 22 |",
        '<th scope="row"><a href="/b/">bb</a></th><td class="n">22</td>',
    ),
    (
        TableBlock("t", ("Name", "N", "M"), [("a", "1", "")], as_records=True),
        "1. a\n   N  1",
        "| a | 1 |  |",
        "<td>1</td>",
    ),
    (
        ChangeList(
            "c",
            [ChangeRow(-30.5, "regression", DocumentLink("mm: x", "/x/"), "a.ops · box", ("D",), "by Dana")],
            ("Author",),
            frozenset(),
            "1 more",
            [ChangeRow(0.4, "same", "b.ops", "", ("",))],
        ),
        "-30.5%  mm: x\n        a.ops · box\n        by Dana\n\n1 more:\n\n +0.4%  b.ops",
        "- **-30.5%** [mm: x](/x/): by Dana (a.ops · box)\n\n1 more:\n\n- **+0.4%** b.ops",
        "<details><summary>1 more</summary>",
    ),
    (CycleFigure(cycle()), "A title\n=======", "# A title", 'aria-label="Open regressions: 2 at v9.1-rc1, 1 at now"'),
    (
        chart(),
        "  v1    100.0  ##################\n  v2    200.0  " + "#" * 36,
        "    v2    200.0",
        'aria-label="s.ops, v1 as 100: v1 100.0, v2 200.0, v3 not measured"',
    ),
]


@pytest.mark.parametrize(("block", "plain", "marked", "page"), ROWS)
def test_each_block_in_its_forms(block: Block, plain: str, marked: str, page: str) -> None:
    doc = document(block)
    assert plain in text.render(doc)
    assert marked in markdown.to_markdown(doc)
    assert page in html(doc)


def test_every_block_has_a_row() -> None:
    assert {type(block) for block, *_ in ROWS} == {
        Heading, Paragraph, Prose, Bullets, TableBlock, ChangeList, CycleFigure, ChartBlock,
    }  # fmt: skip


def hostile(content: str) -> Document:
    return document(
        Heading(2, content, "1"),
        Paragraph(content),
        Prose(content),
        Bullets([content, DocumentLink(content, "/report/1/")]),
        TableBlock(content, (content, content), [(content, DocumentLink(content, "/x/"))], as_records=True),
        TableBlock(content, (content, content), [(content, content)]),
        ChangeList(
            content,
            [ChangeRow(None, "regression", DocumentLink(content, "/x/"), content, (content,), content, content)],
            (content,),
            fold=content,
            folded=[ChangeRow(1.0, "same", content, content, (content,), content)],
        ),
    )


def test_foreign_text_is_shown_and_not_obeyed() -> None:
    doc = hostile(HOSTILE)
    page = html(doc)
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    plain = text.render(doc)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", plain)
    escaped = tuple(block for block in doc.blocks if not isinstance(block, Prose))
    marked = markdown.to_markdown(Document(HOSTILE, HOSTILE, escaped))
    shown = python_markdown.markdown(marked, extensions=["tables"])
    assert "<script" not in shown
    assert "<em>" not in shown
    assert "<code>" not in shown
    assert 'href="javascript' not in shown
    assert shown.count("<td>") == 4  # no cell was broken in two
    assert shown.count("&lt;script&gt;") >= 9


@given(st.text(max_size=200))
def test_no_text_breaks_a_form(content: str) -> None:
    doc = hostile(content)
    longest = max(map(len, re.split(r"\s", text.line(content))), default=0)
    for line in text.render(doc).splitlines():
        assert len(line) <= max(text.WIDTH, longest + 30)
    shown = python_markdown.markdown(markdown.to_markdown(document(Paragraph(content))))
    assert nh3.clean(shown, tags={"h1"}).count("<") == 2  # the title alone is markup
    assert json.loads(as_json(doc))["blocks"][1]["text"] == content


@pytest.mark.parametrize(
    "content", ["1.05", "2.6.24.2", "1. one", "- one", "+ one", "= x", "===", "---", "10) ten", "#1", "a_b"]
)
def test_what_looks_like_a_list_is_none_in_markdown(content: str) -> None:
    shown = unescape(python_markdown.markdown(markdown.to_markdown(document(Paragraph(content), Bullets([content])))))
    assert f"<p>{content}</p>" in shown
    assert f"<li>{content}</li>" in shown


def test_a_wide_table_becomes_records_and_a_long_last_column_is_wrapped() -> None:
    wide = TableBlock("t", ("A", "B", "C"), [("x" * 40, "y" * 40, "z")])
    assert "1. " + "x" * 40 in text.render(document(wide))
    long = text.render(document(TableBlock("t", ("A", "B"), [("x", "word " * 40)])))
    assert max(map(len, long.splitlines())) <= text.WIDTH
    assert "A  B\n-  -" in long


def test_links_tell_their_place_where_there_is_one() -> None:
    doc = document(Bullets([DocumentLink("a report", "/report/1/"), DocumentLink("elsewhere", "https://x.example/")]))
    assert "- a report\n- elsewhere <https://x.example/>" in text.render(doc)
    assert "- a report <https://p.example/report/1/>" in text.render(doc, "https://p.example")
    assert "[a report](https://p.example/report/1/)" in markdown.to_markdown(doc, "https://p.example")


@pytest.mark.parametrize(("content", "columns"), [("abc", 3), ("日本", 4), ("e\u0301", 1)])
def test_the_width_of_letters(content: str, columns: int) -> None:
    assert text.width(content) == columns
