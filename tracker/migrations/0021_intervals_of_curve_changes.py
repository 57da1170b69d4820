"""Changes of curves get the levels of whole stretches and an interval: their curves are looked at again."""

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps


def look_again(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    changed = apps.get_model("tracker", "CurveChange").objects.values("curve")
    apps.get_model("tracker", "Curve").objects.filter(pk__in=changed).update(stale=True)


class Migration(migrations.Migration):
    dependencies = [("tracker", "0020_corrections")]

    operations = [
        migrations.AddField(
            model_name="curvechange",
            name="low_pct",
            field=models.FloatField(blank=True, help_text="95% bootstrap interval of change_pct_raw", null=True),
        ),
        migrations.AddField(model_name="curvechange", name="high_pct", field=models.FloatField(blank=True, null=True)),
        migrations.AlterField(
            model_name="curvechange",
            name="old_level",
            field=models.FloatField(help_text="the median of the builds since the change before"),
        ),
        migrations.AlterField(
            model_name="curvechange",
            name="new_level",
            field=models.FloatField(help_text="the median of the builds until the change after"),
        ),
        migrations.RunPython(look_again, migrations.RunPython.noop),
    ]
