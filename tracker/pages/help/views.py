"""`/help/…/`: pages of docs/ for people who come from a mail or a table."""

from __future__ import annotations

from functools import cache

import markdown
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.safestring import SafeString, mark_safe

PAGES = {
    "answering": "Answering a report",
    "archives": "Reading archives",
    "comparisons": "Reports of releases, comparisons and the index",
    "desk": "The triage desk",
    "mail": "The mail that we send",
    "outbox": "How mail leaves",
    "reading": "How replies are read",
    "results": "Handing in a result",
    "trees": "Following git",
}


@cache
def rendered(name: str) -> SafeString:
    """A page as HTML. Its text is our own, from the checkout, so it is trusted."""
    text = (settings.BASE_DIR / "docs" / f"{name}.md").read_text(encoding="utf-8")
    return mark_safe(markdown.markdown(text, extensions=["tables", "fenced_code"]))


def page(request: HttpRequest, name: str) -> HttpResponse:
    """One of PAGES; nothing else is read from disk."""
    if name not in PAGES:
        raise Http404("there is no such page")
    return render(request, "help/page.html", {"title": PAGES[name], "text": rendered(name)})
