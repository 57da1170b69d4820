"""Restorations, erased mail, and how far all reports are folded."""

from typing import Any

from django.db import migrations, models


def begin(apps: Any, schema_editor: Any) -> None:
    """In a new database, all reports are folded by the present version: there are none."""
    version = 0 if apps.get_model("tracker", "Report").objects.exists() else 1
    apps.get_model("tracker", "Folding").objects.create(pk=1, version=version)


class Migration(migrations.Migration):
    dependencies = [("tracker", "0005_operations")]

    operations = [
        migrations.CreateModel(
            name="Folding",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.PositiveIntegerField(help_text="the version by which all reports are folded")),
                (
                    "folded_to",
                    models.PositiveBigIntegerField(
                        default=0, help_text="key of the last report folded by the next one"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Restoration",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("backup_at", models.DateTimeField()),
                ("restored_at", models.DateTimeField()),
            ],
        ),
        migrations.AddField(
            model_name="rawmessage",
            name="erased_at",
            field=models.DateTimeField(
                blank=True,
                help_text="its writer's data was erased on request: it is empty, and never read again",
                null=True,
            ),
        ),
        migrations.RunPython(begin, migrations.RunPython.noop),
    ]
