"""Jobs of the lab: who else asks, who let it run; which metrics a suite is run for; and reports folded again, since who
is awaited is told otherwise.
"""

from typing import Any

from django.db import migrations, models

OUTCOMES = ["measured", "does-not-apply", "does-not-build", "does-not-boot", "test-fails", "cancelled"]


def fold_again(apps: Any, editor: Any) -> None:
    """An empty database needs no folding."""
    folding = apps.get_model("tracker", "Folding").objects.using(editor.connection.alias)
    folding.update(folded_to=0)
    if not apps.get_model("tracker", "Report").objects.using(editor.connection.alias).exists():
        folding.update(version=5)


class Migration(migrations.Migration):
    dependencies = [
        ("tracker", "0017_person_reports"),
    ]

    operations = [
        migrations.AddField(
            model_name="labjob",
            name="allowed_by",
            field=models.TextField(blank=True, help_text="who here lets any runner take it, proven or not"),
        ),
        migrations.AddField(
            model_name="labjob",
            name="joined",
            field=models.JSONField(blank=True, default=list, help_text="the events that ask for the same"),
        ),
        migrations.AddField(
            model_name="labjob",
            name="patch_parts",
            field=models.JSONField(
                blank=True, default=list, help_text="Message-IDs of the mails that its text is from"
            ),
        ),
        migrations.AddField(
            model_name="labjob",
            name="patch_digest",
            field=models.TextField(blank=True, help_text="SHA-256 of that text"),
        ),
        migrations.AlterField(
            model_name="labjob",
            name="in_series",
            field=models.BooleanField(default=False, help_text="the patch is a series"),
        ),
        migrations.AlterField(
            model_name="labjob",
            name="outcome",
            field=models.TextField(blank=True, choices=[(value, value.replace("-", " ")) for value in OUTCOMES]),
        ),
        migrations.AddField(
            model_name="metric",
            name="key",
            field=models.BooleanField(
                blank=True, help_text="whether its suite is run for it; if unknown, the usual ones are", null=True
            ),
        ),
        migrations.AddField(
            model_name="bisectresult",
            name="files",
            field=models.JSONField(
                blank=True, default=dict, help_text="what says how it was run, as job.yaml, by name"
            ),
        ),
        migrations.AlterField(
            model_name="bisectresult",
            name="note",
            field=models.TextField(
                blank=True, help_text="what of it could not be used, and what it became if not a finding"
            ),
        ),
        migrations.RunPython(fold_again, migrations.RunPython.noop),
    ]
