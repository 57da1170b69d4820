"""Leases, statistics of archives and trees, what operators see of faults."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tracker", "0004_curve_partitions"),
    ]

    operations = [
        migrations.CreateModel(
            name="FaultMail",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("address", models.TextField()),
                ("day", models.DateField()),
                ("at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="TaskRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("task", models.TextField(unique=True)),
                ("at", models.DateTimeField(help_text="when it ended")),
                ("seconds", models.FloatField(help_text="how long it took")),
                ("error", models.TextField(blank=True, help_text="what it raised; empty: it succeeded")),
            ],
        ),
        migrations.AddIndex(
            model_name="bisectresult",
            index=models.Index(fields=["received_at"], name="results_as_received"),
        ),
        migrations.AddConstraint(
            model_name="faultmail",
            constraint=models.UniqueConstraint(fields=("address", "day"), name="one_fault_mail_a_day"),
        ),
    ]
