"""The full-text index of reports and mails: FTS5 with triggers on SQLite; on PostgreSQL a column of words, by itself,
with a GIN index. Common words are found by a walk over the newest rows, which would take the words apart again.

The statements stand here and in tracker/pages/search.py, since a migration imports no live code.
"""

from django.db import migrations

_TABLES = {
    "report_words": ("tracker_report", ("words",)),
    "message_words": ("tracker_message", ("subject", "own_text")),
}


def _sqlite():
    for index, (table, columns) in _TABLES.items():
        names = ", ".join(columns)
        old = ", ".join(f"old.{column}" for column in columns)
        new = ", ".join(f"new.{column}" for column in columns)
        add = f"INSERT INTO {index} (rowid, {names}) VALUES (new.id, {new});"
        remove = f"INSERT INTO {index} ({index}, rowid, {names}) VALUES ('delete', old.id, {old});"
        yield f"CREATE VIRTUAL TABLE {index} USING fts5 ({names}, content='{table}', content_rowid='id')"
        yield f"CREATE TRIGGER {index}_added AFTER INSERT ON {table} BEGIN {add} END"
        yield f"CREATE TRIGGER {index}_removed AFTER DELETE ON {table} BEGIN {remove} END"
        yield f"CREATE TRIGGER {index}_changed AFTER UPDATE OF {names} ON {table} BEGIN {remove} {add} END"
        yield f"INSERT INTO {index} ({index}) VALUES ('rebuild')"


def _postgresql():
    for index, (table, columns) in _TABLES.items():
        text = " || ' ' || ".join(columns)
        words = f"to_tsvector('simple', regexp_replace(left({text}, 200000), '[^[:alnum:]]+', ' ', 'g'))"
        yield f"ALTER TABLE {table} ADD COLUMN {index} tsvector GENERATED ALWAYS AS ({words}) STORED"
        yield f"CREATE INDEX {index} ON {table} USING gin ({index})"


def create(apps, schema_editor):
    statements = {"sqlite": _sqlite, "postgresql": _postgresql}[schema_editor.connection.vendor]
    for statement in statements():
        schema_editor.execute(statement)


def drop(apps, schema_editor):
    for index, (table, _) in _TABLES.items():
        if schema_editor.connection.vendor == "sqlite":
            for end in ("added", "removed", "changed"):
                schema_editor.execute(f"DROP TRIGGER {index}_{end}")
            schema_editor.execute(f"DROP TABLE {index}")
        else:
            schema_editor.execute(f"ALTER TABLE {table} DROP COLUMN {index}")


class Migration(migrations.Migration):
    dependencies = [("tracker", "0002_seed")]
    operations = [migrations.RunPython(create, drop)]
