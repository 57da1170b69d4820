"""The cycle after the last release whose date is known, so that what is reported today stands in a table."""

from django.db import migrations

from tracker import versions
from tracker.kernel_releases import CURRENT


def add(apps, schema_editor):
    version = versions.parse(CURRENT)
    assert version
    apps.get_model("tracker", "Release").objects.get_or_create(version=CURRENT, defaults={"number": version.number})


class Migration(migrations.Migration):
    dependencies = [("tracker", "0005_tables_of_reports")]
    operations = [migrations.RunPython(add, migrations.RunPython.noop, elidable=True)]
