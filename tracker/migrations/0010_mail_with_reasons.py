"""Why each recipient of a mail is one, what it tells, and who wants no mail."""

import django.db.models.functions.text
from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def what_was_told(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    """Mails of before tell what was found before: no follow-up tells it again."""
    findings = apps.get_model("tracker", "Finding").objects
    mails = apps.get_model("tracker", "OutgoingMail").objects.filter(purpose="report")
    for mail in mails.only("pk", "report_id").iterator(chunk_size=1000):
        newest = findings.filter(report=mail.report_id).aggregate(newest=models.Max("pk"))["newest"]
        mails.filter(pk=mail.pk).update(newest_finding=newest or 0)


class Migration(migrations.Migration):
    dependencies = [
        ("tracker", "0009_where_commits_land"),
    ]

    operations = [
        migrations.AddField(
            model_name="commit",
            name="patch_references",
            field=models.JSONField(blank=True, default=list, help_text="what that mail answers, the oldest first"),
        ),
        migrations.AddField(
            model_name="outgoingmail",
            name="body",
            field=models.TextField(blank=True, help_text="its text, as the receiver reads it"),
        ),
        migrations.AddField(
            model_name="outgoingmail",
            name="newest_finding",
            field=models.PositiveBigIntegerField(
                default=0, help_text="the newest finding when it was composed: later ones are not told by it"
            ),
        ),
        migrations.AddField(
            model_name="outgoingmail",
            name="people",
            field=models.JSONField(
                blank=True, default=list, help_text='[[address, name, "To", "Cc" or "" for left out, why], …]'
            ),
        ),
        migrations.AddField(
            model_name="outgoingmail",
            name="withheld",
            field=models.JSONField(
                blank=True,
                default=list,
                help_text="the findings up to that one which it could not tell, since they were held",
            ),
        ),
        migrations.AddField(
            model_name="outgoingmail",
            name="news_until",
            field=models.DateTimeField(
                blank=True, help_text="of a report: what happened until then was looked at for further mails", null=True
            ),
        ),
        migrations.AddField(
            model_name="outgoingmail",
            name="by_hand",
            field=models.BooleanField(default=False, help_text="a person decided on it: no rule does so after him"),
        ),
        migrations.AddField(
            model_name="outgoingmail",
            name="looked_at",
            field=models.DateTimeField(blank=True, help_text="when it was looked at again last", null=True),
        ),
        migrations.CreateModel(
            name="Correspondent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("address", models.TextField(unique=True)),
                (
                    "mailing",
                    models.TextField(
                        choices=[
                            ("opted_in", "Opted In"),
                            ("opted_out", "Opted Out"),
                            ("bouncing", "Bouncing"),
                            ("stopped", "Stopped"),
                        ]
                    ),
                ),
                ("note", models.TextField(blank=True)),
                ("since", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("mailing__in", ["opted_in", "opted_out", "bouncing", "stopped"])),
                        name="mailing_is_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("address", django.db.models.functions.text.Lower("address"))),
                        name="correspondent_address_in_normal_form",
                    ),
                ],
            },
        ),
        migrations.AlterField(
            model_name="outgoingmail",
            name="stale",
            field=models.BooleanField(default=False, help_text="more is known than it says"),
        ),
        migrations.AddIndex(
            model_name="event",
            index=models.Index(
                condition=models.Q(("kind__in", ["still_there", "fix_confirmed", "fix_without_effect", "invalid"])),
                fields=["recorded_at"],
                name="news_for_a_thread",
            ),
        ),
        migrations.AddIndex(
            model_name="outgoingmail",
            index=models.Index(condition=models.Q(("stale", True)), fields=["state"], name="mail_that_says_too_little"),
        ),
        migrations.RunPython(what_was_told, migrations.RunPython.noop),
    ]
