"""When a tree was last looked at, whether or not it had anything new."""

from typing import Any

from django.db import migrations, models


def fill(apps: Any, editor: Any) -> None:
    trees = apps.get_model("tracker", "Tree").objects.using(editor.connection.alias)
    trees.update(looked_at=models.F("walked_at"))


class Migration(migrations.Migration):
    dependencies = [
        ("tracker", "0009_maintainers_of_mail"),
    ]

    operations = [
        migrations.AddField(
            model_name="tree",
            name="looked_at",
            field=models.DateTimeField(blank=True, help_text="when a walk last came to its end", null=True),
        ),
        migrations.AlterField(
            model_name="tree",
            name="walked_at",
            field=models.DateTimeField(blank=True, help_text="when a walk last found anything new", null=True),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
