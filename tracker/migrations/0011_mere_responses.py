"""A reply of author or maintainer is one kind of event, `responded`, whether or not it is sure what else it means."""

from typing import Any

from django.db import migrations, models

OLD, NEW = "replied", "responded"
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


def rename(apps: Any, editor: Any) -> None:
    """Rename events and what reverses them. An event whose new key an earlier reading has taken keeps its own."""
    events = apps.get_model("tracker", "Event").objects.using(editor.connection.alias)
    for event in events.filter(kind=OLD).only("pk", "report_id", "key").iterator(chunk_size=500):
        key = NEW + event.key.removeprefix(OLD)
        same_report = events.filter(report_id=event.report_id)
        if same_report.filter(key=key).exists():
            key = event.key
        same_report.filter(reverses=event.key).update(reverses=key)
        events.filter(pk=event.pk).update(kind=NEW, key=key)


def fold_again(apps: Any, editor: Any) -> None:
    """A response awaits its author also in later states; an empty database needs no folding."""
    if not apps.get_model("tracker", "Report").objects.using(editor.connection.alias).exists():
        apps.get_model("tracker", "Folding").objects.using(editor.connection.alias).update(version=3)


class Migration(migrations.Migration):
    dependencies = [
        ("tracker", "0010_trees_as_looked_at"),
    ]

    operations = [
        migrations.RunPython(rename, migrations.RunPython.noop),
        migrations.RunPython(fold_again, migrations.RunPython.noop),
        migrations.RemoveConstraint(model_name="event", name="event_kind_is_known"),
        migrations.AlterField(model_name="event", name="kind", field=models.TextField(choices=CHOICES)),
        migrations.AlterField(model_name="suggestion", name="kind", field=models.TextField(choices=CHOICES)),
        migrations.AddConstraint(
            model_name="event",
            constraint=models.CheckConstraint(condition=models.Q(("kind__in", KINDS)), name="event_kind_is_known"),
        ),
    ]
