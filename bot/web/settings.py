"""`/operating/settings/`: what each setting is on this machine, where that comes from, and what it means.

For operators; secrets are masked. Settings are changed where they are: in the environment or its file, not here.
"""

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from bot.checks import check_settings
from tracker.pages.http import permission_required
from tracker.services.accounts import SEND

REFERENCE = settings.BASE_DIR / "docs" / "reference.md"
_ROW = re.compile(r"^\| `([A-Z_]+)` \|(.*?)\| (.*) \|$", re.M)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_SECRETS = {"SECRET_KEY", "SECRET_KEY_FALLBACKS", "PERFWORK_READER_KEY", "PERFWORK_METRICS_KEY"}
_USER = re.compile(r"(?<=://).*@", re.S)  # with its password; to the last @: one in either may not be escaped
MASK = "…"


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """A setting: what it is set to (its default, if `source` is empty), by what, and what it means."""

    name: str
    value: str
    source: str
    meaning: str


@require_safe
@permission_required(SEND, "only operators see the settings")
def settings_page(request: HttpRequest) -> HttpResponse:
    """Show what was set, then the defaults, and what `check` says of them."""
    rows = shown_settings(REFERENCE.read_text(), os.environ, settings.FROM_ENVIRONMENT)
    groups = [
        ("set", "Set", [row for row in rows if row.source]),
        ("defaults", "At their defaults", [row for row in rows if not row.source]),
    ]
    context = {"groups": groups, "complaints": check_settings(), "file": os.environ.get("PERFWORK_ENV", "")}
    return render(request, "settings.html", context)


def shown_settings(
    reference: str, environment: Mapping[str, str], from_environment: Collection[str]
) -> list[ShownSetting]:
    """Return the settings of the reference, in its order.

    `from_environment`: the names that the environment set itself; the others in it are from the file of settings.
    """
    rows = []
    for name, default, meaning in _ROW.findall(reference):
        source = ""
        if name in environment:
            source = "environment" if name in from_environment else "file"
        value = masked(name, environment[name]) if source else plain(default)
        rows.append(ShownSetting(name, value, source, plain(meaning)))
    return rows


def masked(name: str, value: str) -> str:
    """Return a value as it may be shown: no secret, and of a URL neither user and password nor query."""
    if name in _SECRETS:
        return MASK if value else ""
    parts = value.split(",") if name == "PERFWORK_ARCHIVES" else [value]
    return ",".join(
        re.sub(r"\?.*", f"?{MASK}", _USER.sub(f"{MASK}@", part)) if "://" in part else part for part in parts
    )


def plain(markdown: str) -> str:
    """Return the text of a cell, without its marks."""
    return _LINK.sub(r"\1", markdown).replace("`", "").replace("\\|", "|").strip()
