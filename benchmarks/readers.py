"""The readers of benchmarks/load.py, as locust runs them: each asks for a page, thinks, and asks for another."""

from __future__ import annotations

import os
import random
from collections import defaultdict
from pathlib import Path

THINKING = 5.0  # seconds
PAGES = "PERFWORK_LOAD_PAGES"  # the file of pages to choose from: KIND, a tab, and the path, on each line
WEIGHTS = {"table": 7, "report": 2, "document": 1}

if PAGES in os.environ:
    from locust import FastHttpUser, constant, task

    BY_KIND: dict[str, list[str]] = defaultdict(list)
    for _line in Path(os.environ[PAGES]).read_text().splitlines():
        _kind, _, _path = _line.partition("\t")
        BY_KIND[_kind].append(_path)

    class Reader(FastHttpUser):  # type: ignore[misc]
        """Somebody who is not signed in."""

        wait_time = constant(THINKING)

        @task
        def read(self) -> None:
            """Ask for a page of a kind, by its weight."""
            [kind] = random.choices(list(WEIGHTS), list(WEIGHTS.values()))
            self.client.get(random.choice(BY_KIND[kind]), name=kind)
