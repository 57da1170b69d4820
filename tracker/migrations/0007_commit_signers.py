"""Those who signed, reviewed or tested a culprit, as git says; trees that are followed fill it."""

from typing import Any

from django.db import migrations, models


def fold_by_version_2(apps: Any, schema_editor: Any) -> None:
    """An empty database needs no folding, though names are cut by bytes from now on, too."""
    if not apps.get_model("tracker", "Report").objects.exists():
        apps.get_model("tracker", "Folding").objects.update(version=2)


class Migration(migrations.Migration):
    dependencies = [("tracker", "0006_care_for_data")]

    operations = [
        migrations.AddField(
            model_name="commit",
            name="signers",
            field=models.JSONField(
                blank=True,
                default=list,
                help_text="addresses and names of those who signed, reviewed or tested it",
            ),
        ),
        migrations.RunPython(fold_by_version_2, migrations.RunPython.noop),
    ]
