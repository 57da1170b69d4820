"""What fio transfers is in MiB/s: lkp-tests divides its KiB/s by 1024, and calls the metric MBps."""

from typing import Any

from django.db import migrations


def name_unit(apps: Any, editor: Any) -> None:
    metrics = apps.get_model("tracker", "Metric").objects.using(editor.connection.alias)
    metrics.filter(name__regex=r"^fio\.[a-z]+_bw_MBps$", unit="MB/s").update(unit="MiB/s")


class Migration(migrations.Migration):
    dependencies = [("tracker", "0025_not_reported")]

    operations = [migrations.RunPython(name_unit, migrations.RunPython.noop)]
