"""On PostgreSQL, curves are kept in one partition a year: of a hundred million samples a page reads a few years.

Segments are compressed already, so PostgreSQL does not try to. Partitions end in 2040; the default one has the rest.
"""

from django.db import migrations

_TABLE = "tracker_curvesegment"
_FIRST, _LAST = 2005, 2040


def _statements():
    yield f"ALTER TABLE {_TABLE} RENAME TO {_TABLE}_whole"
    yield "DROP INDEX segments_of_a_curve_by_time"
    yield f"CREATE SEQUENCE {_TABLE}_keys"
    yield f"""
        CREATE TABLE {_TABLE} (
            id bigint NOT NULL DEFAULT nextval('{_TABLE}_keys'),
            first_at timestamp with time zone NOT NULL,
            last_at timestamp with time zone NOT NULL,
            points integer NOT NULL CHECK (points >= 0),
            packed bytea NOT NULL,
            curve_id bigint NOT NULL REFERENCES tracker_curve (id) DEFERRABLE INITIALLY DEFERRED,
            PRIMARY KEY (id, last_at)
        ) PARTITION BY RANGE (last_at)"""
    yield f"ALTER TABLE {_TABLE} ALTER COLUMN packed SET STORAGE EXTERNAL"
    yield f"ALTER SEQUENCE {_TABLE}_keys OWNED BY {_TABLE}.id"
    yield f"CREATE INDEX segments_of_a_curve_by_time ON {_TABLE} (curve_id, last_at)"
    yield f"CREATE TABLE {_TABLE}_other PARTITION OF {_TABLE} DEFAULT"
    for year in range(_FIRST, _LAST):
        span = f"FROM ('{year}-01-01 00:00+00') TO ('{year + 1}-01-01 00:00+00')"
        yield f"CREATE TABLE {_TABLE}_{year} PARTITION OF {_TABLE} FOR VALUES {span}"
    columns = "id, first_at, last_at, points, packed, curve_id"
    yield f"INSERT INTO {_TABLE} ({columns}) SELECT {columns} FROM {_TABLE}_whole"
    yield "SET CONSTRAINTS ALL IMMEDIATE"
    yield f"SELECT setval('{_TABLE}_keys', COALESCE((SELECT MAX(id) FROM {_TABLE}), 0) + 1, false)"
    yield f"DROP TABLE {_TABLE}_whole"


def partition(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        for statement in _statements():
            schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [("tracker", "0003_search")]
    operations = [migrations.RunPython(partition, migrations.RunPython.noop)]
