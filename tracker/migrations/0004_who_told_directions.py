"""Until now only labs told directions, and nothing was tested: say so, and test what can be."""

from __future__ import annotations

from typing import Any

from django.db import migrations


def tell(apps: Any, schema_editor: Any) -> None:
    from tracker.samples import Side
    from tracker.significance import welch

    apps.get_model("tracker", "Metric").objects.exclude(direction="unknown").update(direction_by="lab")
    finding = apps.get_model("tracker", "Finding")
    told = finding.objects.filter(
        result__isnull=False, old_mean__isnull=False, new_mean__isnull=False, old_runs__gte=2, new_runs__gte=2
    )
    rows = list(told.defer("old_samples", "new_samples"))
    sides = [
        (
            Side(row.old_mean, abs(row.old_mean) * (row.old_stddev_pct or 0.0) / 100, row.old_runs),
            Side(row.new_mean, abs(row.new_mean) * (row.new_stddev_pct or 0.0) / 100, row.new_runs),
        )
        for row in rows
    ]
    for row, p in zip(rows, welch(sides), strict=True):
        row.p_value = p
    finding.objects.bulk_update(rows, ["p_value"], batch_size=200)


class Migration(migrations.Migration):
    dependencies = [("tracker", "0003_bisect_results")]
    operations = [migrations.RunPython(tell, migrations.RunPython.noop)]
