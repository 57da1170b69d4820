"""Start with the release dates of the kernels up to now, so that imported history finds its place."""

from datetime import UTC, datetime

from django.db import migrations

from tracker.kernel_releases import RELEASED
from tracker.versions import parse


def add(apps, schema_editor):
    release = apps.get_model("tracker", "Release")
    for version, day in RELEASED.items():
        release.objects.get_or_create(
            version=version,
            defaults={
                "number": parse(version).number,
                "released_at": datetime.fromisoformat(day).replace(tzinfo=UTC, hour=23, minute=59),
            },
        )


class Migration(migrations.Migration):
    dependencies = [("tracker", "0001_initial")]
    operations = [migrations.RunPython(add, migrations.RunPython.noop)]
