"""`/help/…/`: pages of docs/, linked from mail and from other pages."""

from __future__ import annotations

from functools import cache

import markdown
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.safestring import SafeString, mark_safe

PAGES = {
    "answering": "Answering a report",
    "api": "The API, and tables as files",
    "archives": "Reading archives",
    "comparisons": "Release reports, comparisons and the index",
    "operating": "Operating an installation",
    "lab": "The lab's work list, and its runners",
    "triage": "The triage page",
    "mail": "The mail we send",
    "measurements": "Measurements over time",
    "outbox": "How mail is sent",
    "reading": "How replies are read",
    "reliability": "Every mail once: how it was tested",
    "results": "Submitting a result",
    "scale": "Scale: what it costs, and what breaks first",
    "trees": "Following git",
}


@cache
def rendered(name: str) -> SafeString:
    """Return a page as HTML. It comes from our own checkout, so it is trusted."""
    text = (settings.BASE_DIR / "docs" / f"{name}.md").read_text(encoding="utf-8")
    html = markdown.markdown(text, extensions=["tables", "fenced_code"])
    wide = '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>'  # a phone scrolls it by itself
    html = html.replace("<table>", wide).replace("</table>", "</table></div>")
    return mark_safe(html.replace("<pre>", '<pre tabindex="0">'))  # which the keyboard must be able to scroll, too


def index(request: HttpRequest) -> HttpResponse:
    """List the pages."""
    return render(request, "help/index.html", {"pages": PAGES})


def page(request: HttpRequest, name: str) -> HttpResponse:
    """Show one of PAGES; no other file is read."""
    if name not in PAGES:
        raise Http404("there is no such page")
    return render(request, "help/page.html", {"title": PAGES[name], "text": rendered(name)})
