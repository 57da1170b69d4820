"""The daily mail to triagers has each suggestion once; what already waits stands in the review queue."""

from typing import Any

from django.db import migrations, models
from django.utils import timezone


def count_as_mailed(apps: Any, editor: Any) -> None:
    suggestions = apps.get_model("tracker", "Suggestion").objects.using(editor.connection.alias)
    suggestions.filter(decision="open").update(mailed_at=timezone.now())


class Migration(migrations.Migration):
    dependencies = [("tracker", "0022_stored_sizes")]

    operations = [
        migrations.AddField(
            model_name="suggestion",
            name="mailed_at",
            field=models.DateTimeField(blank=True, help_text="when the daily mail to triagers had it", null=True),
        ),
        migrations.RunPython(count_as_mailed, migrations.RunPython.noop),
    ]
