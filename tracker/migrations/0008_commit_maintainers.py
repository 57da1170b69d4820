"""People whom MAINTAINERS lists for a culprit, from the tree that has it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tracker", "0007_commit_signers"),
    ]

    operations = [
        migrations.AddField(
            model_name="commit",
            name="maintainers",
            field=models.JSONField(
                blank=True,
                help_text="addresses and names of those whom MAINTAINERS lists for its files; null: not asked yet",
                null=True,
            ),
        ),
    ]
