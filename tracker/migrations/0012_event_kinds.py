"""The kinds of events without `replied`, apart from the rows: PostgreSQL alters no table whose rows have just gone."""

from django.db import migrations, models

KINDS = [
    "reported",
    "same_patch",
    "in_next",
    "gone",
    "merged",
    "landed",
    "fix_gone",
    "fix_failed",
    "fix_withdrawn",
    "fix_without_effect",
    "responded",
    "working",
    "asked",
    "answered",
    "disputed",
    "fix_proposed",
    "fix_confirmed",
    "fix_queued",
    "fix_merged",
    "fix_landed",
    "still_there",
    "dropped",
    "fix_reverted",
    "expected",
    "invalid",
    "duplicate",
    "unduplicated",
    "disappeared",
    "reopened",
    "noted",
    "retitled",
    "assigned",
    "reminders_off",
    "blocks",
    "unblocked",
    "test_asked",
    "reading_rejected",
    "reversed",
]
CHOICES = [(kind, kind) for kind in KINDS]


class Migration(migrations.Migration):
    dependencies = [
        ("tracker", "0011_mere_responses"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="event", name="event_kind_is_known"),
        migrations.AlterField(model_name="event", name="kind", field=models.TextField(choices=CHOICES)),
        migrations.AlterField(model_name="suggestion", name="kind", field=models.TextField(choices=CHOICES)),
        migrations.AddConstraint(
            model_name="event",
            constraint=models.CheckConstraint(condition=models.Q(("kind__in", KINDS)), name="event_kind_is_known"),
        ),
    ]
