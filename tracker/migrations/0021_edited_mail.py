"""Who edited the text of a mail that waits."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tracker", "0020_corrections"),
    ]

    operations = [
        migrations.AddField(
            model_name="outgoingmail",
            name="edited_by",
            field=models.TextField(
                blank=True, help_text="the operator who edited its text, which is not composed again"
            ),
        ),
    ]
