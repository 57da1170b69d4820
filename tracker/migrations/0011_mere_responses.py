"""A reply of author or maintainer is one kind of event, `responded`, whether or not it is sure what else it means."""

from typing import Any

from django.db import migrations

OLD, NEW = "replied", "responded"


def rename(apps: Any, editor: Any) -> None:
    """Rename events and what reverses them; where another reading of the mail has made the same, one is enough.

    Nobody needs to decide any more whether such a mail is a response.
    """
    events = apps.get_model("tracker", "Event").objects.using(editor.connection.alias)
    suggestions = apps.get_model("tracker", "Suggestion").objects.using(editor.connection.alias)
    for event in events.filter(kind=OLD).only("pk", "report_id", "key", "message_id").iterator(chunk_size=500):
        key = NEW + event.key.removeprefix(OLD)
        same_report = events.filter(report_id=event.report_id)
        same_report.filter(reverses=event.key).update(reverses=key)
        if same_report.filter(key=key).exists():
            events.filter(pk=event.pk).delete()
        else:
            events.filter(pk=event.pk).update(kind=NEW, key=key)
        suggestions.filter(report_id=event.report_id, message_id=event.message_id, kind=NEW, decision="open").delete()


def fold_again(apps: Any, editor: Any) -> None:
    """A response awaits its author also in later states; an empty database needs no folding."""
    folding = apps.get_model("tracker", "Folding").objects.using(editor.connection.alias)
    folding.update(folded_to=0)
    if not apps.get_model("tracker", "Report").objects.using(editor.connection.alias).exists():
        folding.update(version=3)


class Migration(migrations.Migration):
    dependencies = [
        ("tracker", "0010_trees_as_looked_at"),
    ]

    operations = [
        migrations.RunPython(rename, migrations.RunPython.noop),
        migrations.RunPython(fold_again, migrations.RunPython.noop),
    ]
