"""Five hundred wrong command lines, made from the options of all commands: each ends with its code, and says why."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

import manage

COMMANDS = [name for names in manage.GROUPS.values() for name in names if name != "check"]  # Django's own
CODES = {
    os.EX_USAGE, os.EX_DATAERR, os.EX_NOINPUT, os.EX_NOUSER, os.EX_UNAVAILABLE, os.EX_CANTCREAT,
    os.EX_IOERR, os.EX_TEMPFAIL, os.EX_NOPERM, os.EX_CONFIG,
}  # fmt: skip
DJANGOS = {"--help", "--version", "--verbosity", "--settings", "--pythonpath", "--traceback", "--no-color"}
DJANGOS |= {"--force-color", "--skip-checks"}
NO_NUMBER = ("x", "1.5", "", "٣٣x", "0x10", "9" * 400, "1e3")
NO_NAME = ("💥", "\x1b[31mred", "a\nb", "../../etc/passwd", "'; DROP TABLE x; --", "%s%n{0}", "x" * 5000)
SERVES = {"up", "demo"}  # and would not end
ANY_FILE = {"backup", "restore"}  # any name is right for a file that they write and read


@dataclass(frozen=True)
class Wrong:
    """A wrong command line."""

    words: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(self.words)[:60].encode("unicode_escape").decode()


def parsers() -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    """Yield each command's parser, and those of its subcommands, with the words that lead to it."""
    apps = get_commands()
    for name in COMMANDS:
        parser = load_command_class(apps[name], name).create_parser("manage.py", name)
        subs = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
        if subs:
            yield (name,), parser
        for sub in subs:
            yield from (((name, word), own) for word, own in sub.choices.items())
        if not subs:
            yield (name,), parser


def wrong_lines(folder: Path) -> Iterator[Wrong]:
    """Yield unknown options, options without their value, and values that are none, of each command and subcommand."""
    for words, parser in parsers():
        yield Wrong((*words, "--no-such-option"))
        yield Wrong((*words, "--no-such-option=1", "x"))
        for action in parser._actions:
            yield from (Wrong((*words, *more)) for more in _wrong_values(words[0], action, folder))
    for bind in ("", ":", "a", "8000", "127.0.0.1:x", "1:0", "127.0.0.1:99999", "127.0.0.1:٣", "[::1]"):
        yield from (Wrong((command, f"--bind={bind}")) for command in sorted(SERVES))
    for value in ("0", "-1", "65", "9" * 400):  # so many processes would take the machine down
        yield Wrong(("up", f"--workers={value}"))


def _wrong_values(command: str, action: argparse.Action, folder: Path) -> Iterator[tuple[str, ...]]:
    flag = max(action.option_strings, key=len, default="")
    if flag in DJANGOS or isinstance(action, argparse._SubParsersAction):
        return
    if flag and action.nargs != 0:
        yield (flag,)
        if action.type is int:
            yield from ((f"{flag}={value}",) for value in NO_NUMBER if (command, flag) != ("up", "--workers"))
        if action.choices:
            yield from ((f"{flag}={value}",) for value in NO_NAME)
    elif not flag and command not in SERVES:
        names = () if command in ANY_FILE else (*NO_NAME, str(folder / "none"), "/dev/null")
        yield from ((value,) for value in (*names, str(folder / "folder"), str(folder / "none" / "x")))
        if command != "backup":
            yield (str(folder / "junk"),)


def run(words: tuple[str, ...]) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    before, sys.argv = sys.argv, ["manage.py", *words]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            manage.main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    finally:
        sys.argv = before
    return code, out.getvalue(), err.getvalue()


@pytest.mark.django_db(transaction=True)
def test_five_hundred_wrong_command_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "junk").write_bytes(bytes(range(256)) * 50)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    monkeypatch.setattr("bot.processes.Supervisor.run", lambda *_: pytest.fail("`up` took it for right"))
    monkeypatch.setattr("bot.management.commands.demo.Demo.play", lambda *_: pytest.fail("`demo` took it for right"))
    lines = list(wrong_lines(tmp_path))
    faults = {}
    for wrong in lines:
        code, out, err = run(wrong.words)
        said = [line for line in err.splitlines() if line.strip()]
        if code not in CODES or "Traceback" in out + err or not said:
            faults[str(wrong)] = (code, out[-100:], err[:300])
    assert len(lines) > 500
    assert faults == {}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("apikey", "list"), "no keys; `apikey create NAME --producer …` makes one\n"),
        (("outbox", "list"), "no mails\n"),
        (("lab",), "nothing to test; --all lists what has ended\n"),
        (("lab", "--all"), "no jobs\n"),
    ],
)
def test_an_empty_list_says_so(words: tuple[str, ...], said: str) -> None:
    assert run(words) == (0, said, "")
