#!/usr/bin/env python3
"""Perfwork's command line: `./manage.py help` lists the commands."""

import gc
import importlib.util
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from django.core.management.base import CommandParser

# Imports make a hundred thousand objects that stay; looking through them at every 700 new ones is a tenth of the start.
gc.set_threshold(50_000, 10, 10)


def main() -> None:
    """Run one command; what the operator can mend is said on one line, without a traceback.

    It ends with 0, or with a code of sysexits(3): 64 for a wrong command line, 65 for input that is refused, 66 where
    what was named isn't there, 69 for what is missing, 75 for what may work later, 78 for settings.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tracker.settings")
    _in_the_virtual_environment()
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line, get_commands
    from django.core.management.base import CommandParser
    from django.db.utils import OperationalError, ProgrammingError

    if sys.argv[1:] in ([], ["help"]):
        print(overview())
        return
    if sys.argv[1] == "setup" and "PERFWORK_VAR" not in os.environ:  # root makes nothing in the service's folder
        with tempfile.TemporaryDirectory(prefix="perfwork-setup-") as folder:
            os.environ["PERFWORK_VAR"] = folder
            main()
        return
    CommandParser.error = _refuse  # type: ignore[method-assign]  # Django lets no command choose its parser
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as mistake:
        _end(os.EX_CONFIG, str(mistake))
    except SystemExit as end:
        raise SystemExit(os.EX_USAGE if end.code == 1 and sys.argv[1] not in get_commands() else end.code) from None
    except (OperationalError, ProgrammingError) as trouble:
        if "--traceback" in sys.argv:
            raise
        words = " ".join(str(trouble).split())
        if "no such table" in words or "does not exist" in words:
            _end(os.EX_CONFIG, f"database: {words}; run `./manage.py migrate` first")
        _end(os.EX_TEMPFAIL, f"database: {words}")
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(130)


def _refuse(parser: "CommandParser", message: str) -> NoReturn:
    """Say what is wrong with a command line on one line; argparse prints all options before it."""
    from django.core.management.base import CommandError

    if not parser.called_from_command_line:
        raise CommandError(f"Error: {message}")
    parser.exit(os.EX_USAGE, f"{parser.prog}: {message}; see {parser.prog} --help\n")


def _end(code: int, why: str) -> NoReturn:
    sys.stderr.write(f"perfwork: {why}\n")
    sys.exit(code)


# Perfwork's own commands, by what people do.
GROUPS = {
    "Results": ("ingest", "tool_output", "lab", "study"),
    "Mail": ("read", "explain", "outbox", "digest"),
    "Reports": ("triage", "report", "track", "export", "examples"),
    "Running it": ("setup", "up", "status", "check", "people", "apikey", "demo", "documentation"),
    "Looking after it": ("backup", "restore", "prune", "erase", "replay", "refold"),
}


def overview() -> str:
    """Return the commands, Perfwork's first, in groups, each with the first sentence of its help."""
    import django
    from django.core.management import get_commands, load_command_class

    django.setup()
    apps = get_commands()
    lines = ["Perfwork: regressions of the Linux kernel's performance, from a lab's result to its fix", ""]
    for group, names in GROUPS.items():
        lines.append(f"{group}:")
        for name in names:
            sentence = load_command_class(apps[name], name).help.partition(". ")[0].rstrip(".")
            lines.append(f"  {name:14} {sentence[:110]}")
    others = sorted(name for name in apps if not any(name in names for names in GROUPS.values()))
    lines += ["", "Of Django: " + ", ".join(others), "", "./manage.py COMMAND --help explains one of them."]
    return "\n".join(lines)


def _in_the_virtual_environment() -> None:
    """Where this Python has no Django, start again with that of .venv, which make has filled."""
    if importlib.util.find_spec("django"):
        return
    python = Path(__file__).resolve().parent / ".venv" / "bin" / "python"
    if not python.exists() or Path(sys.prefix).resolve() == python.parent.parent.resolve():
        sys.exit("perfwork: Django is not installed: run `make demo SERVE=0` first, which installs it into .venv")
    os.execv(python, [str(python), *sys.argv])


if __name__ == "__main__":
    main()
