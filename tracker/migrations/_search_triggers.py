"""The triggers of the full-text index on SQLite, for migrations that change tracker_report or tracker_message.

SQLite changes a table by making a new one, which loses its triggers without a word: nothing would be found any more.
Such a migration ends with `migrations.RunPython(make_again, migrations.RunPython.noop)`.
"""

_TABLES = {
    "report_words": ("tracker_report", ("words",)),
    "message_words": ("tracker_message", ("subject", "own_text")),
}


def make_again(apps, schema_editor):
    """Make the triggers again, and the index from the rows that are there."""
    if schema_editor.connection.vendor != "sqlite":
        return
    for index, (table, columns) in _TABLES.items():
        names = ", ".join(columns)
        old = ", ".join(f"old.{column}" for column in columns)
        new = ", ".join(f"new.{column}" for column in columns)
        add = f"INSERT INTO {index} (rowid, {names}) VALUES (new.id, {new});"
        remove = f"INSERT INTO {index} ({index}, rowid, {names}) VALUES ('delete', old.id, {old});"
        when = {"added": "INSERT", "removed": "DELETE", "changed": f"UPDATE OF {names}"}
        does = {"added": add, "removed": remove, "changed": f"{remove} {add}"}
        for name, event in when.items():
            schema_editor.execute(f"DROP TRIGGER IF EXISTS {index}_{name}")
            schema_editor.execute(f"CREATE TRIGGER {index}_{name} AFTER {event} ON {table} BEGIN {does[name]} END")
        schema_editor.execute(f"INSERT INTO {index} ({index}) VALUES ('rebuild')")
