"""The stylesheet: every rule is used somewhere, colours have names, and a first visit loads little."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

from django.conf import settings

ROOT = Path(settings.BASE_DIR)
SHEET = (ROOT / "static" / "perfwork.css").read_text()
RULES = re.sub(r"/\*.*?\*/", "", SHEET, flags=re.DOTALL)


def test_no_rule_is_dead() -> None:
    """Every class and id of a selector is written in a template, a script, or the code that renders or names it."""
    folders = (("templates", "*.html"), ("static", "*.js"), ("tracker", "*.py"), ("static", "vendor/uplot.min.js"))
    text = "\n".join(file.read_text() for folder, kind in folders for file in sorted((ROOT / folder).rglob(kind)))
    written = set(re.findall(r"[\w-]+", text))
    numbered = set(re.findall(r"\b([a-z]+)\{\{", text))  # "over{{ forloop.counter }}"
    selectors = re.findall(r"([^{};]+)\{", RULES)
    names = {name for selector in selectors for name in re.findall(r"[.#]([a-zA-Z][\w-]*)", selector)}
    assert len(names) > 100
    slugs = {name for name in names if name.replace("-", " ") in text}  # of a verdict, "not significant"
    assert {name for name in names - written - slugs if name.rstrip("0123456789") not in numbered} == set()


def test_colours_are_tokens() -> None:
    """Outside the tokens no colour is given by number, so that dark mode and forced colours miss none."""
    outside = re.sub(r":root \{[^}]*\}", "", RULES)
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b(?![^{}]*\{)", outside) == []


def test_every_token_is_defined_in_each_scheme() -> None:
    light, dark, forced = (
        dict(re.findall(r"(--[a-z0-9-]+): ([^;]+);", block)) for block in re.findall(r":root \{([^}]*)\}", RULES)[:3]
    )
    assert set(dark) == {name for name, value in light.items() if value.startswith("#")} == set(forced)
    assert set(re.findall(r"var\((--[\w-]+)\)", RULES)) <= set(light)


def test_a_first_visit_loads_little() -> None:
    """The stylesheet is under 30 kB; with all scripts of the triage page it takes 30 of the 60 kB of a first visit."""
    assert len(SHEET.encode()) < 30_000
    files = ("perfwork.css", "search.js", "triage.js", "vendor/htmx.min.js")
    assert sum(len(gzip.compress((ROOT / "static" / name).read_bytes())) for name in files) < 30_000
