"""Template filters that format values for the pages."""

import math
import shlex
from collections.abc import Mapping
from datetime import datetime

import nh3
from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

from tracker import charts
from tracker.charts import paths
from tracker.domain import text as formats
from tracker.domain.search import field_value
from tracker.models import Finding
from tracker.services.report_summary import spark

register = template.Library()
register.filter("signed", formats.page_pct)
register.filter("typeset", formats.typeset)
register.filter("span", formats.duration)
register.filter("number", formats.number)
register.filter("outline", charts.outline)
register.filter("search_value", field_value)
register.filter("lore_url", formats.lore_url)
# The HTML allowed in a note: nothing that is fetched, executed or framed.
_MARKDOWN = MarkdownIt("commonmark", {"html": False})  # its time is linear in the length of the text
_TAGS = {"p", "br", "em", "strong", "code", "pre", "blockquote", "ul", "ol", "li", "a", "h3", "h4", "hr"}


@register.filter
def as_markdown(value: str) -> SafeString:
    """Render user-written CommonMark as HTML, sanitized by nh3."""
    rendered = _MARKDOWN.render(value[:20_000]).strip()
    clean = nh3.clean(rendered, tags=_TAGS, attributes={"a": {"href"}}, url_schemes={"http", "https", "mailto"})
    return mark_safe(clean)


@register.filter
def moment(value: datetime | None) -> SafeString:
    """Render a time to the minute, in UTC; "" for None."""
    if value is None:
        return SafeString("")
    return format_html('<time datetime="{}">{}</time>', value.isoformat(), f"{value:%Y-%m-%d %H:%M}")


@register.filter
def spread(value: float | None) -> str:
    """Format a spread as reports on the lists do: "± 3%"; "" below 2%."""
    return "" if value is None or value < 2 else f"± {value:.0f}%"


@register.filter
def gibibytes(size: int) -> str:
    """Return a machine's memory as kernel people count it, and as our mail says it: "256 GiB"."""
    return f"{size >> 30} GiB"


@register.filter
def sureness(finding: Finding) -> str:
    """Format the interval and the p-value of a finding; an em dash if it was not tested."""
    return formats.typeset(formats.confidence(finding.low_pct, finding.high_pct, finding.p_value)) or "—"


@register.filter
def reasons(value: str) -> str:
    """Join reasons, one per line, with semicolons."""
    return value.replace("\n", "; ")


@register.filter
def words(value: str) -> str:
    """Format a state or kind: "no response" for "no_response"."""
    return value.replace("_", " ")


@register.filter
def get(mapping: Mapping[str, object], key: str) -> object:
    """Return a mapping's value for a key, or None."""
    return mapping.get(key)


@register.filter
def dots(finding: Finding) -> SafeString:
    """Render the samples of both sides as a sparkline; "" without samples."""
    good, bad, width = paths(spark(finding.old_samples, finding.new_samples))
    label = f"samples: {len(finding.old_samples)} before, {len(finding.new_samples)} after"
    svg = '<svg width="{}" height="24" role="img" aria-label="{}">{}</svg>'
    sides = format_html('<path class="good" d="{}"/><path class="bad" d="{}"/>', good, bad)
    return format_html(svg, width, label, sides) if good else SafeString("")


_LONGEST, _OCTAVE = 72, 12  # pixels: of a bar, and for each doubling


@register.filter
def noise_bar(finding: Finding) -> SafeString:
    """Render the change ÷ noise as a bar with its number, the same length for the same ratio on every page."""
    times = finding.times_noise
    if times is None:
        return SafeString('<span class="soft">unknown</span>')
    length = round(min(_LONGEST, _OCTAVE * math.log2(1 + max(0.0, times))))
    kind = {"regression": "w", "improvement": "b"}.get(finding.verdict, "u")
    svg = '<svg class="size" width="{}" height="6" aria-hidden="true"><rect class="{}" width="{}" height="6"/></svg> {}'
    return format_html(svg, _LONGEST, kind, length, formats.multiple(times))


@register.filter
def page_of(name: str, kind: str) -> str:
    """Return the path of the page of a metric, machine, subsystem or author, its name quoted."""
    return reverse("thing", args=[kind, name])


@register.filter
def split(text: str) -> list[str]:
    return text.split()


@register.filter
def b4_mbox(message_id: str) -> str:
    """Return the command that fetches a thread, for a shell: a Message-ID is anybody's text."""
    return shlex.join(["b4", "mbox", *(["--"] if message_id.startswith("-") else []), message_id])
