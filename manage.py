#!/usr/bin/env python3
"""Perfwork's command line: `./manage.py help` lists the commands."""

import gc
import importlib.util
import os
import sys
from pathlib import Path

# Imports make a hundred thousand objects that stay; looking through them at every 700 new ones is a tenth of the start.
gc.set_threshold(50_000, 10, 10)


def main() -> None:
    """Run one command; what the operator can mend is said on one line, without a traceback."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tracker.settings")
    _in_the_virtual_environment()
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from django.db.utils import OperationalError, ProgrammingError

    if sys.argv[1:] in ([], ["help"]):
        print(overview())
        return
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as mistake:
        sys.exit(f"perfwork: {mistake}")
    except (OperationalError, ProgrammingError) as trouble:
        if "--traceback" in sys.argv:
            raise
        words = " ".join(str(trouble).split())
        missing = "no such table" in words or "does not exist" in words
        sys.exit(f"perfwork: database: {words}" + ("; run `./manage.py migrate` first" if missing else ""))
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(130)


# Perfwork's own commands, by what people do.
GROUPS = {
    "Results": ("ingest", "tool_output", "lab", "study"),
    "Mail": ("read", "explain", "outbox", "digest"),
    "Reports": ("triage", "report", "track", "export", "examples"),
    "Running it": ("up", "status", "check", "apikey", "demo", "documentation"),
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
