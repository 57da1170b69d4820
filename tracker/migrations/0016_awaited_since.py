"""Since when somebody is awaited: a column, filled by folding the reports again after the upgrade."""

from typing import Any

from django.db import migrations, models


def fold_again(apps: Any, editor: Any) -> None:
    """An empty database needs no folding."""
    folding = apps.get_model("tracker", "Folding").objects.using(editor.connection.alias)
    folding.update(folded_to=0)
    if not apps.get_model("tracker", "Report").objects.using(editor.connection.alias).exists():
        folding.update(version=4)


class Migration(migrations.Migration):
    dependencies = [
        ("tracker", "0015_public_mail"),
    ]

    operations = [
        migrations.AddField(
            model_name="report", name="awaited_since", field=models.DateTimeField(blank=True, null=True)
        ),
        migrations.RunPython(fold_again, migrations.RunPython.noop),
    ]
