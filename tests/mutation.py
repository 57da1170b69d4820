"""Would the tests notice? `make mutation` changes the code a little, two thousand times, and runs the tests of each.

Of the parts on which the truth of a status rests: the state of reports, the proofs of who wrote a mail and what they
permit, the transitions of outgoing mail, what counts as more than chance, and the lab's jobs. Prints the share of
changes that a test noticed, and each that one could have noticed. A part takes five to thirty minutes; `tests.mutation
trust` runs one of them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from tests.equivalent_changes import reason_of

LONGEST = 3600.0  # seconds a part may take


@dataclass(frozen=True, slots=True)
class MutatedPart:
    """Files, and the tests that are to notice a change in them."""

    files: Sequence[str]
    tests: Sequence[str]
    needs_migrations: bool = False  # for rows that only a migration makes, such as groups


PARTS = {
    "state": MutatedPart(["tracker/domain/report_state.py"], ["tests/tracker/domain"]),
    "gate": MutatedPart(["bot/replies/gate.py"], ["tests/bot/replies/test_gate.py"]),
    "trust": MutatedPart(["bot/mail/authentication.py", "bot/mail/settings.py"], ["tests/bot/mail"]),
    "transitions": MutatedPart(
        ["tracker/services/mail_transitions.py"],
        [
            "tests/tracker/services/test_mail_transitions.py",
            "tests/bot/mail/test_bounces.py",
            "tests/stories/test_outbox.py",
            "tests/stories/test_once_only.py",
        ],
    ),
    "multiplicity": MutatedPart(["tracker/domain/statistics.py"], ["tests/tracker/domain/test_statistics.py"]),
    "jobs": MutatedPart(["tracker/services/lab_jobs.py"], ["tests/stories/lab"], needs_migrations=True),
}
CONFIGURATION = """
[tool.mutmut]
source_paths = ["tracker", "bot"]
only_mutate = {files}
also_copy = ["templates", "fixtures", "static", "docs", "properdocs.yml", "manage.py", "benchmarks", "build"]
pytest_add_cli_args = ["-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist"{more}]
pytest_add_cli_args_test_selection = {tests}
# Each run makes a database of its own, for seconds that mutmut's estimate of the tests alone leaves out: with mutmut's
# one second beside it, a busy machine counted 204 of 482 changes as noticed because they ran out of time.
timeout_constant = 20.0
"""


def mutate(part: MutatedPart, folder: Path) -> tuple[Counter[str], list[tuple[str, str]]]:
    """Return how many changes were noticed or survived, and the names and differences that survived."""
    tree = folder / "tree"
    copied = subprocess.check_output(["git", "-C", ROOT, "ls-files", "-z"], text=True).split("\0")[:-1]
    for name in copied:
        if (ROOT / name).exists():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
    shutil.copytree(ROOT / "build" / "help", tree / "build" / "help")
    more = "" if part.needs_migrations else ", '--nomigrations'"  # which takes half of the time of a run
    settings = CONFIGURATION.format(files=list(part.files), tests=list(part.tests), more=more).replace("'", '"')
    with (tree / "pyproject.toml").open("a") as file:
        file.write(settings)
    env = {**os.environ, "PERFWORK_VAR": str(folder / "var"), "PYTEST_DEBUG_TEMPROOT": str(folder)}
    mutmut = [sys.executable, "-m", "mutmut"]
    with (folder / "log").open("wb") as log:
        ran = subprocess.run(
            [*mutmut, "run"], cwd=tree, env=env, stdout=log, stderr=subprocess.STDOUT, timeout=LONGEST, check=False
        )
    if ran.returncode:
        sys.exit(f"mutmut failed: {(folder / 'log').read_text(errors='replace')[-2000:]}")
    listed = subprocess.check_output([*mutmut, "results", "--all", "true"], cwd=tree, env=env, text=True)
    outcomes = dict(re.findall(r"^\s*(\S+): ([\w ]+)$", listed, re.M))
    survivors = [name for name, outcome in outcomes.items() if outcome in ("survived", "no tests")]
    shown = (subprocess.check_output([*mutmut, "show", name], cwd=tree, env=env, text=True) for name in survivors)
    changes = [
        "\n".join(line for line in each.splitlines() if line[:2] in ("- ", "+ ", "-\t", "+\t")) for each in shown
    ]
    return Counter(outcomes.values()), list(zip(survivors, changes, strict=True))


def main() -> None:
    for name in sys.argv[1:] or PARTS:
        with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
            counts, survivors = mutate(PARTS[name], Path(folder))
        noticed = counts["killed"] + counts["timeout"]
        total = noticed + len(survivors)
        gaps = [f"{mutant}\n{change}" for mutant, change in survivors if not reason_of(mutant, change)]
        print("\n".join(gaps))
        print(
            f"{name}: {noticed} of {total} changes noticed, {noticed / total:.1%}; {len(gaps)} others could be, and "
            f"{len(survivors) - len(gaps)} change nothing (tests/equivalent_changes.py)",
            flush=True,
        )


if __name__ == "__main__":
    main()
