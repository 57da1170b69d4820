"""A report that was not mailed yet says so, and waits for the lab: the reports are folded again after the upgrade."""

from typing import Any

from django.db import migrations


def fold_again(apps: Any, editor: Any) -> None:
    """An empty database needs no folding."""
    folding = apps.get_model("tracker", "Folding").objects.using(editor.connection.alias)
    folding.update(folded_to=0)
    if not apps.get_model("tracker", "Report").objects.using(editor.connection.alias).exists():
        folding.update(version=7)


class Migration(migrations.Migration):
    dependencies = [("tracker", "0024_withdrawn_suggestions")]

    operations = [migrations.RunPython(fold_again, migrations.RunPython.noop)]
