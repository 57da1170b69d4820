"""The tree keeps its own rules: no file past 500 lines, no function past 50, a first line that says what a file is for;
and the command line finds the Python that has what it needs.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conftest import ROOT

_GENERATED = {"tracker/migrations/0001_schema.py"}
FILES = [
    path
    for room in ("tracker", "bot", "tests", "benchmarks", "fixtures")
    for path in sorted((ROOT / room).rglob("*.py"))
    if str(path.relative_to(ROOT)) not in _GENERATED
]


def test_no_file_is_longer_than_500_lines() -> None:
    assert len(FILES) > 600
    longer = {str(path): lines for path in FILES if (lines := len(path.read_text().splitlines())) > 500}
    assert longer == {}


def test_no_function_is_longer_than_50_lines() -> None:
    """Of the code; a test may tell a longer story."""
    longer = {}
    for path in FILES:
        if path.is_relative_to(ROOT / "tests"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno >= 50:
                longer[f"{path.relative_to(ROOT)}:{node.name}"] = (node.end_lineno or 0) - node.lineno + 1
    assert longer == {}


def test_every_file_says_in_its_first_line_what_it_is_for() -> None:
    texts = {path: path.read_text() for path in FILES}
    assert [str(path) for path, text in texts.items() if text.strip() and not ast.get_docstring(ast.parse(text))] == []


def test_files_that_are_named_in_a_text_exist() -> None:
    """A docstring, a comment or a page that names a file which has moved leads nowhere."""
    names = {path.name for path in FILES} | {"manage.py", "get_maintainer.py"}
    pages = [path for folder in (ROOT, ROOT / "docs") for path in folder.glob("*.md") if path.name != "CHANGELOG.md"]
    gone = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in (*FILES, *pages)
        for name in re.findall(r"(?<![\w.*-])[a-z]\w*\.py\b", path.read_text())
        if name not in names
    }
    assert gone == set()


def test_the_layout_that_contributing_shows_is_the_one_that_is_enforced() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (each["layers"] for each in contracts if each.get("containers") == ["bot"])
    floors = {name: floor for floor, layer in enumerate(layers) for name in layer.split(" | ")}
    lines = re.findall(r"^    (bot/.*)", (ROOT / "CONTRIBUTING.md").read_text(), re.M)
    shown = [name for line in lines for name in re.findall(r"bot/(\w+)", line)]
    assert sorted(shown) == sorted(floors)
    assert [floors[name] for name in shown] == sorted(floors.values())


def test_the_map_names_every_package() -> None:
    text = (ROOT / "docs" / "DESIGN.md").read_text()
    layout = text[text.index("## 3. Layout") : text.index("## 4. Rules")]
    packages = [path for room in ("bot", "tracker") for path in (ROOT / room).glob("*/**/__init__.py")]
    names = {path.parent.name for path in packages if len(path.relative_to(ROOT).parts) <= 4}
    assert len(names) > 60
    assert sorted(name for name in names if not re.search(rf"\b{name}\b", layout)) == []


@pytest.fixture
def bare_python(tmp_path: Path) -> list[str]:
    """A Python without site packages, as of a machine on which nothing was installed."""
    return [str(Path(sys.base_prefix) / "bin" / "python3"), "-S", "-E"]


@pytest.mark.slow
def test_the_command_line_finds_the_virtual_environment_that_make_filled(
    tmp_path: Path, bare_python: list[str]
) -> None:
    shutil.copy(ROOT / "manage.py", tmp_path)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PERFWORK"))}
    command = [*bare_python, "manage.py", "version"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.stderr == (
        "perfwork: Django is not installed: run `make demo SERVE=0` first, which installs it into .venv\n"
    )
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "started with $@"\n')
    python.chmod(0o755)
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.stdout == "started with manage.py version\n", done.stderr
