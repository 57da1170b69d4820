"""What is stored, measured daily: `/operating/` shows sizes and how they grow."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tracker", "0021_intervals_of_curve_changes")]

    operations = [
        migrations.CreateModel(
            name="StoredSize",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.TextField()),
                ("size", models.PositiveBigIntegerField(help_text="bytes")),
                ("at", models.DateTimeField(db_index=True)),
            ],
        ),
    ]
