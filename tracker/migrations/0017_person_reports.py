"""Reports that people make: who reported it and what their mail says, offers, and a commit that nobody knows yet."""

import django.db.models.deletion
from django.db import migrations, models

from tracker.migrations._search_triggers import make_again

KINDS = [
    "reported",
    "bisected",
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
        ("tracker", "0016_awaited_since"),
    ]

    operations = [
        migrations.CreateModel(
            name="OfferedReport",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("message_id", models.TextField(unique=True)),
                ("subject", models.TextField(blank=True)),
                ("author_name", models.TextField(blank=True)),
                ("author_email", models.TextField(blank=True)),
                ("sent_at", models.DateTimeField()),
                ("reporters", models.JSONField(default=list, help_text="addresses and names of its author")),
                (
                    "recipients",
                    models.JSONField(default=list, help_text="addresses and names of those whom it went to"),
                ),
                ("subsystem", models.TextField(blank=True)),
                ("proven", models.BooleanField(default=False, help_text="whether its author is verified")),
                (
                    "score",
                    models.PositiveSmallIntegerField(
                        help_text="how much it looks like a report of a performance regression"
                    ),
                ),
                (
                    "facts",
                    models.JSONField(default=dict, help_text="what it says (tracker/domain/archived_reports.py)"),
                ),
                (
                    "decision",
                    models.TextField(
                        choices=[
                            ("open", "Open"),
                            ("accepted", "Accepted"),
                            ("changed", "Changed"),
                            ("rejected", "Rejected"),
                        ],
                        default="open",
                    ),
                ),
                ("decided_by", models.TextField(blank=True)),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.RemoveConstraint(
            model_name="event",
            name="event_kind_is_known",
        ),
        migrations.AddField(
            model_name="commit",
            name="placeholder",
            field=models.BooleanField(
                default=False, help_text="it stands for the culprit of a person's report while nobody has bisected it"
            ),
        ),
        migrations.AddField(
            model_name="report",
            name="facts",
            field=models.JSONField(
                blank=True, default=dict, help_text="what that person's mail says (tracker/domain/archived_reports.py)"
            ),
        ),
        migrations.AddField(
            model_name="report",
            name="reported_by",
            field=models.TextField(
                choices=[("robot", "robot"), ("person", "person")], default="robot", help_text="who opened it"
            ),
        ),
        migrations.AddField(
            model_name="report",
            name="reporters",
            field=models.JSONField(
                blank=True, default=list, help_text="addresses and names of the person who reported it"
            ),
        ),
        migrations.AlterField(
            model_name="event",
            name="kind",
            field=models.TextField(choices=CHOICES),
        ),
        migrations.AlterField(
            model_name="suggestion",
            name="kind",
            field=models.TextField(choices=CHOICES),
        ),
        migrations.AddConstraint(
            model_name="event",
            constraint=models.CheckConstraint(condition=models.Q(("kind__in", KINDS)), name="event_kind_is_known"),
        ),
        migrations.AddField(
            model_name="offeredreport",
            name="source",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.PROTECT, related_name="offered", to="tracker.rawmessage"
            ),
        ),
        migrations.AddIndex(
            model_name="offeredreport",
            index=models.Index(
                condition=models.Q(("decision", "open")), fields=["-proven", "-score", "-sent_at"], name="open_offers"
            ),
        ),
        migrations.AddConstraint(
            model_name="offeredreport",
            constraint=models.CheckConstraint(
                condition=models.Q(("decision__in", ["open", "accepted", "changed", "rejected"])),
                name="offer_decision_is_known",
            ),
        ),
        migrations.RunPython(make_again, migrations.RunPython.noop),
    ]
