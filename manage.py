#!/usr/bin/env python3
"""Perfwork's command line: `./manage.py help` lists the commands."""

import gc
import os
import sys

# Imports make a hundred thousand objects that stay; looking through them at every 700 new ones is a tenth of the start.
gc.set_threshold(50_000, 10, 10)


def main() -> None:
    """Run one command; what the operator can mend is said on one line, without a traceback."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tracker.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from django.db.utils import OperationalError, ProgrammingError

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


if __name__ == "__main__":
    main()
