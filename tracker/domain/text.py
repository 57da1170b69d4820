"""Numbers and durations as people read them: one set of formats for pages, documents and mail. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

NONE = "—"
_DAY = 86400


def signed_pct(change: float | None) -> str:
    """Return a change for a table or a page, with both signs: "+32.5%", "-12.8%"."""
    return NONE if change is None else f"{change:+.1f}%"


def prose_pct(change: float) -> str:
    """Return a change for a sentence or a subject: a minus is printed and a plus is not, as the lists write it.

    >>> prose_pct(-12.8), prose_pct(32.5)
    ('-12.8%', '32.5%')
    """
    return f"{change:.1f}%"


def interval(low: float | None, high: float | None) -> str:
    """Return a confidence interval, "95% CI -13.2 to -12.4%"; "" where there is none."""
    return "" if low is None or high is None else f"95% CI {low:+.1f} to {high:+.1f}%"


def p_value(p: float) -> str:
    """Return "p = 0.012", or "p < 0.0001" below that."""
    return f"p = {p:.2g}" if p >= 0.0001 else "p < 0.0001"


def number(value: float | None) -> str:
    """Return a measured value with four significant digits, or as an integer from 1,000: "184,436", "3.052"."""
    if value is None:
        return NONE
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.4g}"


def duration(value: timedelta | None) -> str:
    """Return a duration in its largest unit: "3 days", "2 h", "5 min"."""
    if value is None:
        return NONE
    if value.days:
        return f"{value.days} day{'s' if value.days > 1 else ''}"
    minutes = value.seconds // 60
    return f"{minutes // 60} h" if minutes >= 60 else f"{minutes} min"


def age(moment: datetime | None, now: datetime) -> str:
    """Return how long ago a moment was, short enough for a column: "6 min", "3 d", "6 mo", "2 y"; "" for None.

    >>> from datetime import UTC, timedelta
    >>> now = datetime(2026, 1, 1, tzinfo=UTC)
    >>> [age(now - timedelta(minutes=minutes), now) for minutes in (6, 200, 5000, 60_000, 300_000, 2_000_000)]
    ['6 min', '3 h', '3 d', '5 w', '6 mo', '3 y']
    """
    if moment is None:
        return ""
    seconds = max(0, int((now - moment).total_seconds()))
    units = (
        *((730 * _DAY, 365 * _DAY, "y"), (90 * _DAY, 30 * _DAY, "mo"), (21 * _DAY, 7 * _DAY, "w"), (_DAY, _DAY, "d")),
        (3600, 3600, "h"),
    )
    for least, size, unit in units:
        if seconds >= least:
            return f"{seconds // size} {unit}"
    return f"{seconds // 60} min"


def multiple(value: float) -> str:
    """Format how many times something is another.

    >>> multiple(4.12), multiple(12.6)
    ('4.1×', '13×')
    """
    return f"{value:.0f}×" if value >= 10 else f"{value:.1f}×"


def confidence(low: float | None, high: float | None, p: float | None, effect: float | None) -> str:
    """Format how sure a change is: "95% CI -31.2 to -28.7%, p < 0.0001, 12× noise"; empty if it was not tested."""
    parts = [interval(low, high), p_value(p) if p is not None else ""]
    parts.append(f"{multiple(effect)} noise" if effect is not None else "")
    return ", ".join(part for part in parts if part)
