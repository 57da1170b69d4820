"""The key of what a mail says has its number among those of its kind, not among all that the mail says."""

import re
from collections import defaultdict
from typing import Any

from django.db import migrations

_NUMBERED = re.compile(r"([a-z_]+):(.+)#(\d+)")


def renumber(apps: Any, editor: Any) -> None:
    models = {name: apps.get_model("tracker", name) for name in ("Event", "Suggestion", "LabJob")}
    tables = {name: model.objects.using(editor.connection.alias) for name, model in models.items()}
    numbered = {
        *tables["Event"].filter(message_id__gt="", key__contains="#").values_list("report", flat=True),
        *tables["Suggestion"].filter(message_id__gt="", key__contains="#").values_list("report", flat=True),
    }
    for report in sorted(numbered):
        of_report = {name: table.filter(report=report) for name, table in tables.items()}
        keys = {
            key: name
            for table in ("Event", "Suggestion")
            for key, name in of_report[table].filter(message_id__gt="").values_list("key", "message_id")
        }
        for old, new in _renamed(keys).items():
            for table, column in (
                ("Event", "key"),
                ("Event", "reverses"),
                ("Suggestion", "key"),
                ("LabJob", "event_key"),
            ):
                _rename(of_report[table], column, old, new)


def _renamed(keys: dict[str, str]) -> dict[str, str]:
    """Return the new keys by the old ones, the lowest first, so that no key is taken when it is given."""
    places: dict[tuple[str, str], list[int]] = defaultdict(list)
    for key, message_id in keys.items():
        kind, _, rest = key.partition(":")
        if rest == message_id:
            places[kind, message_id].append(0)
        elif (match := _NUMBERED.fullmatch(key)) and match[2] == message_id:
            places[kind, message_id].append(int(match[3]))
    return {
        _key(kind, message_id, place): _key(kind, message_id, number)
        for (kind, message_id), found in places.items()
        for number, place in enumerate(sorted(set(found)))
        if number != place
    }


def _key(kind: str, message_id: str, number: int) -> str:
    return f"{kind}:{message_id}#{number}" if number else f"{kind}:{message_id}"


def _rename(rows: Any, column: str, old: str, new: str) -> None:
    """Rename a key, also where it is part of another one: "reversed:…", "expected=…", "…!1"; none that is taken."""
    whole = re.compile(rf"(?:^|(?<=[=:])){re.escape(old)}(?=!|$)")
    for pk, value in list(rows.filter(**{f"{column}__contains": old}).values_list("pk", column)):
        changed = whole.sub(lambda _: new, value)
        taken = column != "reverses" and rows.filter(**{column: changed}).exists()
        if changed != value and not taken:
            rows.filter(pk=pk).update(**{column: changed})


class Migration(migrations.Migration):
    dependencies = [
        ("tracker", "0012_event_kinds"),
    ]

    operations = [
        migrations.RunPython(renumber, migrations.RunPython.noop),
    ]
