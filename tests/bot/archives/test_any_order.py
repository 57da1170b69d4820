"""The same mails leave the same database (DESIGN rule 11), whatever the order, batches, archives and restarts."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import models, transaction

from bot.archives import reader
from bot.archives.batch import replay_all
from bot.archives.files import read_mbox
from bot.archives.public_inbox import EpochSource, read_epoch
from bot.archives.reader import read_source
from bot.mail.settings import BotSettings
from tests.conftest import OPERATORS, ROBOTS, ROOT
from tests.support.databases import migrated
from tracker.models import Message

# What differs by nature: when and where something was stored, which worker did it, and the archives themselves.
LEFT_OUT = {
    "Archive", "ArchiveNames", "ArchivePositions", "Mirror", "ServiceLease", "Lease", "Correspondent", "SignIn",
}  # fmt: skip
CLOCKS = {"id", "revision", "recorded_at", "received_at", "archive", "position"}


def contents() -> dict[str, list[str]]:
    """Return all rows of all tables, by names instead of numbers."""

    @cache
    def named(model: type[models.Model], pk: int) -> str:
        row = model._default_manager.get(pk=pk)
        own = {"RawMessage": "digest", "Message": "message_id", "Report": "tag", "Commit": "sha"}
        return str(getattr(row, own[model.__name__])) if model.__name__ in own else str(row)

    found: dict[str, list[str]] = {}
    for model in apps.get_app_config("tracker").get_models():
        if model.__name__ in LEFT_OUT:
            continue
        fields = [each for each in model._meta.concrete_fields if each.name not in CLOCKS]
        rows = []
        for row in model._default_manager.all():
            values: list[Any] = []
            for field in fields:
                value = getattr(row, field.attname)
                if isinstance(field, models.ForeignKey) and value is not None:
                    value = named(field.related_model, value)  # type: ignore[arg-type]
                values.append(f"{field.name}={bytes(value) if isinstance(value, memoryview) else value!r}")
            rows.append(" ".join(values))
        found[model.__name__] = sorted(rows)
    return found


def differences(found: dict[str, list[str]], expected: dict[str, list[str]]) -> list[str]:
    """Return the rows that only one of them has."""
    return [
        f"{sign} {name}: {row}"
        for name, rows in expected.items()
        for sign, extra in (("missing", set(rows) - set(found[name])), ("more", set(found[name]) - set(rows)))
        for row in sorted(extra)
    ]


def epoch_of(folder: Path, mails: Sequence[bytes]) -> EpochSource:
    """Write an epoch with these mails, in this order."""
    subprocess.run(["git", "init", "-q", "--bare", "-b", "master", folder], check=True)
    lines: list[bytes] = []
    for number, raw in enumerate(mails):
        lines.append(b"commit refs/heads/master\ncommitter a <a@b> %d +0000\ndata 1\nm\n" % number)
        lines.append(b"M 100644 inline m\ndata %d\n%b\n" % (len(raw), raw))
    subprocess.run(["git", "-C", folder, "fast-import", "--quiet"], input=b"".join(lines), check=True)
    return EpochSource(folder, str(folder))


def dense(shared: Path, folder: Path, settings: BotSettings, now: datetime) -> list[bytes]:
    """Return the mails of the dense epoch that are filed when all of it is read, and one in a hundred others."""
    epoch = folder / "cgroups.git"
    subprocess.run(["git", "clone", "-q", "--mirror", shared / "lore" / "cgroups.0.bundle", epoch], check=True)
    with transaction.atomic():
        read_source(EpochSource(epoch, str(epoch)), settings, now)
        filed = set(Message.objects.values_list("source__position", flat=True))
        transaction.set_rollback(True)
    assert len(filed) > 60
    return [mail.raw for number, mail in enumerate(read_epoch(epoch)) if mail.position in filed or number % 100 == 0]


PIECES = 4  # of the mails, as archives that two workers read at once
DUMP = """
import json, sys
import django
django.setup()
from tests.bot.archives.test_any_order import contents
json.dump(contents(), sys.stdout)
"""


def run_all(commands: Sequence[Sequence[str]], environment: dict[str, str]) -> list[str]:
    """Run commands at the same time, and return what they print."""
    running = [
        subprocess.Popen([sys.executable, *each], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        for each in commands
    ]
    printed = [each.communicate()[0] for each in running]
    assert [each.returncode for each in running] == [0] * len(commands)
    return printed


@pytest.mark.long
@pytest.mark.django_db
def test_two_workers_on_postgresql_leave_the_same_database(
    shared: Path, tmp_path: Path, lkp: BotSettings, now: datetime, postgres: str
) -> None:
    mails = dense(shared, tmp_path, lkp, now)
    pieces = [str(epoch_of(tmp_path / f"{number}.git", mails[number::PIECES]).epoch) for number in range(PIECES)]
    lists = {"PERFWORK_ROBOTS": ",".join(sorted(ROBOTS)), "PERFWORK_OPERATORS": ",".join(sorted(OPERATORS))}
    base = {**os.environ, **lists, "PERFWORK_TRUST": "open", "PERFWORK_ENV": "", "PYTHONPATH": str(ROOT)}
    base |= {"DJANGO_SETTINGS_MODULE": "tracker.settings", "PYTHONHASHSEED": "0"}
    alone = base | {"PERFWORK_VAR": str(tmp_path / "alone"), "DATABASE_URL": f"sqlite:///{tmp_path}/alone/db.sqlite3"}
    migrated(tmp_path / "alone" / "db.sqlite3")
    run_all([["manage.py", "read", *pieces]], alone)
    both = base | {
        "PERFWORK_VAR": str(tmp_path / "both"),
        "DATABASE_URL": postgres.replace("postgresql://", "postgres://", 1),
    }
    run_all([["manage.py", "migrate", "-v0"]], both)
    run_all([["manage.py", "read", *pieces[:2]], ["manage.py", "read", *pieces[2:]]], both)
    run_all([["manage.py", "read", *pieces]], both)  # what the other one filed last, as within a minute
    expected, found = (json.loads(*run_all([["-c", DUMP]], each)) for each in (alone, both))
    assert len(expected["Message"]) > 60
    assert "\n".join(differences(found, expected)) == ""


ORDERS = int(os.environ.get("PERFWORK_ORDERS", "1"))  # random ones; `make orders` tries twenty


def courses(mails: Sequence[bytes], folder: Path) -> Iterator[tuple[list[EpochSource], dict[str, float]]]:
    """Yield ways to read the same mails: archives in order, and the sizes of batches."""
    yield [epoch_of(folder / "as-posted", mails)], {"MOST": 500}
    yield [epoch_of(folder / "reversed", mails[::-1])], {"MOST": 5}
    for seed in range(ORDERS):
        order = random.Random(seed)
        shuffled = list(mails)
        order.shuffle(shuffled)
        cuts = sorted(order.sample(range(1, len(shuffled)), (seed + 1) % 4))
        pieces = [shuffled[start:end] for start, end in zip([0, *cuts], [*cuts, None], strict=True)]
        epochs = [epoch_of(folder / f"{seed}-{number}", piece) for number, piece in enumerate(pieces)]
        yield epochs, {"MOST": order.randrange(1, 60), "EVERY": order.choice([0.1, 2.0])}


def threads(shared: Path, folder: Path, settings: BotSettings, now: datetime) -> list[bytes]:
    """Return real threads and single reports, some of culprits that were reported twice."""
    names = ("threads-dev", "reports-dev")
    mails = [mail.raw for name in names for mail in read_mbox(shared / f"{name}.mbox")]
    return list(dict.fromkeys(mails))[:200]


@pytest.mark.long
@pytest.mark.django_db
@pytest.mark.parametrize("chosen", [dense, threads])
def test_any_order_leaves_the_same_database(
    shared: Path, tmp_path: Path, lkp: BotSettings, now: datetime, monkeypatch: pytest.MonkeyPatch, chosen: Any
) -> None:
    mails = chosen(shared, tmp_path, lkp, now)
    first: dict[str, list[str]] = {}
    for epochs, sizes in courses(mails, tmp_path):
        for name, value in sizes.items():
            monkeypatch.setattr(reader, name, value)
        with transaction.atomic():
            while sum(read_source(epoch, lkp, now).kept for epoch in epochs):
                pass
            found = contents()
            first = first or found
            assert "\n".join(differences(found, first)) == ""
            for epoch in epochs:
                read_source(epoch, lkp, now, again=True)
            assert "\n".join(differences(contents(), first)) == "", "after read --again"
            replay_all(lkp, now)
            assert "\n".join(differences(contents(), first)) == "", "after replay --all"
            transaction.set_rollback(True)
    assert len(first["Message"]) > 60
