"""The links in the header of every page: the current one is marked, and badges say how much waits.

Only those who may act on what waits see its page there, and its badge; the pages of the lab are open to all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse

from tracker import __version__
from tracker.models import Decision, OfferedReport, OutgoingMail, OutgoingState, Suggestion
from tracker.pages.http import kept
from tracker.services.accounts import DECIDE, SEND

MOST = 99  # a badge counts no further
_KEEP = 15.0  # seconds

# Menus and their pages: a label, and the name and arguments of the URL.
_MENUS: Sequence[tuple[str, Sequence[tuple[str, str, tuple[str, ...]]]]] = (
    ("", [("Releases", "releases", ())]),
    (
        "Reports",
        [
            ("Escalations", "escalations", ()),
            ("Statistics", "statistics", ()),
            *((f"By {kind}", "things", (kind,)) for kind in ("subsystem", "author", "machine", "metric")),
        ],
    ),
    (
        "Measurements",
        [
            ("Unreported changes", "changes", ()),
            ("Performance index", "index", ()),
            ("Compare kernels", "compare", ()),
            ("Studies", "studies", ()),
        ],
    ),
    (
        "The lab",
        [
            ("Results", "results", ()),
            ("Work list", "lab", ()),
            ("Review queue", "review", ()),
            ("Outbox", "outbox", ()),
        ],
    ),
    ("", [("Help", "help-index", ())]),
)
# Questions over all releases, at the end of the menu "Reports".
_QUESTIONS = (
    ("Fix posted", "state:fix_proposed"),
    ("Fix queued", "state:fix_queued"),
    ("Fix missing in stable", "stable:missing"),
    ("Blocking a release", "blocking:yes state:open"),
)


@dataclass(frozen=True, slots=True)
class NavLink:
    """A link of the header. `badge`: how much waits there, "" for nothing or for who can't act on it."""

    label: str
    url: str
    is_current: bool
    badge: str = ""


@dataclass(frozen=True, slots=True)
class NavMenu:
    """Some links under a label; without a label they stand in the header itself."""

    label: str
    links: Sequence[NavLink]

    @property
    def is_current(self) -> bool:
        return any(link.is_current for link in self.links)


def navigation(request: HttpRequest) -> dict[str, Any]:
    """The context processor: `navigation` is built when a template asks for it; `site` is for the footer;
    `program` is how commands are called here.
    """
    installation = {  # not `site`, which Django's own sign-in view sets
        "name": settings.PERFWORK_LAB,
        "contact": settings.PERFWORK_LIST_ADDRESS,
        "version": __version__,
    }
    return {"navigation": lambda: _navigation(request), "installation": installation, "program": settings.PROGRAM}


def _navigation(request: HttpRequest) -> dict[str, Any]:
    """Return the menus for everybody, and the pages on which this person may act."""
    path = request.path
    menus = []
    for label, pages in _MENUS:
        addresses = [(text, reverse(name, args=args)) for text, name, args in pages]
        links = [
            NavLink(text, url, path.startswith(url) if label == "The lab" else path == url) for text, url in addresses
        ]
        for text, query in _QUESTIONS if label == "Reports" else ():
            url = f"{reverse('search')}?{urlencode({'q': query})}"
            links.append(NavLink(text, url, request.get_full_path() == url))
        menus.append(NavMenu(label, links))
    return {"menus": menus, "operations": _own_pages(request)}


def _own_pages(request: HttpRequest) -> list[NavLink]:
    """Return the pages on which this person may act, with how much waits there."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return []
    pages: list[tuple[str, str, QuerySet[Any, Any]]] = []
    if user.has_perm(DECIDE):
        suggestions, offers = (
            rows.filter(decision=Decision.OPEN).order_by() for rows in (Suggestion.objects, OfferedReport.objects)
        )
        pages.append(("To review", "review", suggestions.values("pk").union(offers.values("pk"), all=True)))
    if user.has_perm(SEND):
        waiting = OutgoingMail.objects.filter(state__in=(OutgoingState.COMPOSED, OutgoingState.HELD))
        pages.append(("Operating", "operating", waiting.values("pk")))
    return [
        NavLink(label, url := reverse(name), request.path.startswith(url), _badge(name, rows))
        for label, name, rows in pages
    ]


def _badge(name: str, rows: QuerySet[Any, Any]) -> str:
    """Return the number of rows up to MOST; counted again after some seconds."""
    number = kept(f"waiting:{name}", rows[: MOST + 1].count, _KEEP)
    return "" if not number else str(number) if number <= MOST else f"{MOST}+"
