"""What fio's own files say of bandwidth has the unit of lkp-tests: MBps counts 2^20 bytes as a MB."""

from typing import Any

from django.db import migrations


def name_unit(apps: Any, editor: Any) -> None:
    metrics = apps.get_model("tracker", "Metric").objects.using(editor.connection.alias)
    metrics.filter(name__regex=r"^fio\.[a-z]+_bw_MBps$", unit="MiB/s").update(unit="MB/s")


class Migration(migrations.Migration):
    dependencies = [("tracker", "0025_not_reported")]

    operations = [migrations.RunPython(name_unit, migrations.RunPython.noop)]
