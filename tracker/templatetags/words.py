"""How values are written on the pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from urllib.parse import quote

import nh3
from django import template
from django.template import engines
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

from tracker.models import Finding
from tracker.pages.reports.words import chance, headline
from tracker.pages.triage.controls import Controls
from tracker.pages.triage.question import TriageQuery
from tracker.pages.triage.rows import TriageRow, paths
from tracker.services.report_summary import spark

register = template.Library()
# What a note may hold; nothing that is fetched, run or framed.
_MARKDOWN = MarkdownIt("commonmark", {"html": False})  # in time that grows with the text, whatever it holds
_TAGS = {"p", "br", "em", "strong", "code", "pre", "blockquote", "ul", "ol", "li", "a", "h3", "h4", "hr"}


@register.filter
def as_markdown(value: str) -> SafeString:
    """What a person wrote, as HTML: CommonMark, cleaned by nh3."""
    made = _MARKDOWN.render(value[:20_000]).strip()
    clean = nh3.clean(made, tags=_TAGS, attributes={"a": {"href"}}, url_schemes={"http", "https", "mailto"})
    return mark_safe(clean)


@register.filter
def signed(value: float | None) -> str:
    """A change with its sign, one decimal and the per cent sign: "-12.4%"; an em dash for none."""
    return "—" if value is None else f"{value:+.1f}%"


@register.filter
def spread(value: float | None) -> str:
    """A spread as the lists write it: "± 3%", and nothing below 2 %."""
    return "" if value is None or value < 2 else f"± {value:.0f}%"


@register.filter
def span(value: timedelta | None) -> str:
    """A length of time in its largest unit: "3 days", "2 h", "5 min"; an em dash for none."""
    if value is None:
        return "—"
    if value.days:
        return f"{value.days} day{'s' if value.days > 1 else ''}"
    minutes = value.seconds // 60
    return f"{minutes // 60} h" if minutes >= 60 else f"{minutes} min"


@register.filter
def number(value: float | None) -> str:
    """A measured value with enough digits and no more."""
    if value is None:
        return "—"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


@register.filter
def sureness(finding: Finding) -> str:
    """How sure a change is: "-31.2 … -28.7 %, p < 0.0001, 12 × noise"; an em dash where nothing was tested."""
    parts = []
    if finding.low_pct is not None and finding.high_pct is not None:
        parts.append(f"{finding.low_pct:+.1f} … {finding.high_pct:+.1f} %")
    if finding.p_value is not None:
        parts.append(chance(finding.p_value))
    if finding.effect is not None:
        parts.append(f"{finding.effect:.0f} × noise" if finding.effect >= 10 else f"{finding.effect:.1f} × noise")
    return ", ".join(parts) or "—"


@register.filter
def reasons(value: str) -> str:
    """Reasons, a line each, in one line."""
    return value.replace("\n", "; ")


@register.filter
def words(value: str) -> str:
    """A state or kind as words: "no response" of "no_response"."""
    return value.replace("_", " ")


@register.filter
def age(value: datetime | None) -> str:
    """How long ago, in the largest fitting unit: "3 d"."""
    if value is None:
        return "—"
    seconds = max(0, int((timezone.now() - value).total_seconds()))
    for size, unit in ((365 * 86400, "y"), (86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return "now"


@register.simple_tag
def desk_rows(rows: Sequence[TriageRow], may_change: bool = False, swap: bool = False) -> SafeString:
    """The rows of the desk, with boxes for those who may change them; `swap`: to take the place of those on a page."""
    told = {"rows": rows, "may_change": may_change, "swap": swap}
    return mark_safe(engines["fast"].get_template("desk_rows.html").render(told))


@register.simple_tag
def filter_form(controls: Controls, question: TriageQuery, orders: Iterable[str], groups: Iterable[str]) -> SafeString:
    """The form above a table, with hundreds of values to choose from."""
    told = {"controls": controls, "question": question, "orders": orders, "groups": groups}
    return mark_safe(engines["fast"].get_template("controls.html").render(told))


@register.filter
def get(mapping: Mapping[str, object], key: str) -> object:
    """What a mapping has under a key; nothing where it has nothing."""
    return mapping.get(key)


@register.filter
def in_words(finding: Finding) -> str:
    """The headline of a report in a sentence or two."""
    return headline(finding)


@register.filter
def dots(finding: Finding) -> SafeString:
    """The samples of both sides as a little chart; nothing where there are none."""
    good, bad, width = paths(spark(finding.old_samples, finding.new_samples))
    words = f"samples: {len(finding.old_samples)} before, {len(finding.new_samples)} after"
    svg = '<svg width="{}" height="24" role="img" aria-label="{}">{}</svg>'
    sides = format_html('<path class="good" d="{}"/><path class="bad" d="{}"/>', good, bad)
    return format_html(svg, width, words, sides) if good else SafeString("")


@register.filter
def page_of(name: str, kind: str) -> str:
    """The address of the page of a metric, a machine, a subsystem or an author, whatever its name holds."""
    return f"/{kind}/{quote(name, safe='')}/"
