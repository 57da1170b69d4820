"""Rate limits keep the times that they have given, no longer only the last one: a slow address delays no other mail."""

from typing import Any

from django.db import migrations, models
from django.utils import timezone


def keep_reserved(apps: Any, editor: Any) -> None:
    """What was reserved until some time stays reserved."""
    now = timezone.now()
    calendars = apps.get_model("tracker", "RateCalendar").objects.using(editor.connection.alias)
    calendars.filter(used_until__lte=now).delete()
    for row in calendars.all():
        row.taken = [[now.isoformat(), row.used_until.isoformat()]]
        row.save(update_fields=["taken"])


def forget(apps: Any, editor: Any) -> None:
    apps.get_model("tracker", "RateCalendar").objects.using(editor.connection.alias).all().delete()


class Migration(migrations.Migration):
    dependencies = [
        ("tracker", "0013_keys_by_kind"),
    ]

    operations = [
        migrations.RenameModel("TokenBucket", "RateCalendar"),
        migrations.AddField(
            model_name="ratecalendar",
            name="taken",
            field=models.JSONField(default=list, help_text="[[begin, end], …], joined where they touch"),
        ),
        migrations.RunPython(keep_reserved, migrations.RunPython.noop),
        migrations.RemoveField(model_name="ratecalendar", name="used_until"),
        migrations.RunPython(migrations.RunPython.noop, forget),  # the first step back
    ]
