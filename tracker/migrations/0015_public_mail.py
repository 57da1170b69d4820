"""Only mail that a public archive has, or that went to a list, is shown to everybody; other mail is hidden."""

import email
import email.policy
import re
import zlib
from email.utils import getaddresses
from typing import Any

from django.db import migrations, models

from tracker.migrations._search_triggers import make_again

AT_ONCE = 200
_LIST_HOST = re.compile(
    r"@(?:(?:.+\.)?(?:vger\.kernel\.org|kvack\.org|googlegroups\.com|sourceforge\.net)\Z|.*\blists?\b)", re.I
)
_FROM_LINE = re.compile(rb"\A(?:>?From [^\n]*\n)+")


def tell_kinds(apps: Any, editor: Any) -> None:
    """By their addresses; a Maildir, whose address tells nothing, when it is next read."""
    archives = apps.get_model("tracker", "Archive").objects.using(editor.connection.alias)
    for archive in archives.all():
        path = archive.path
        if path == "-" or path.startswith(("imap://", "imaps://")):
            archive.kind = "delivery"
        elif path.endswith(".git") or path.startswith(("nntp://", "nntps://", "http://", "https://")):
            archive.kind = "public"
        archive.save(update_fields=["kind"])


def tell_public_mail(apps: Any, editor: Any) -> None:
    """A mail without a public archive is public if its To or Cc has a list, or the list that our report went to."""
    models_of, alias = apps.get_model, editor.connection.alias
    messages = models_of("tracker", "Message").objects.using(alias)
    lists = {
        address.lower()
        for addresses in models_of("tracker", "OutgoingMail").objects.using(alias).values_list("lists", flat=True)
        for address in addresses
    }
    shown = messages.exclude(kind="bounce")
    shown.filter(source__archive__kind="public").update(public=True)
    last, hidden = 0, []
    rows = messages.filter(public=False).select_related("source", "source__archive").order_by("pk")
    while batch := list(rows.filter(pk__gt=last)[:AT_ONCE]):
        last = batch[-1].pk
        public = [row.pk for row in batch if row.kind != "bounce" and _went_to_a_list(row, lists)]
        messages.filter(pk__in=public).update(public=True)
        hidden += [row.message_id for row in batch if row.pk not in public]
    for name in ("Event", "Suggestion"):
        quoted = models_of("tracker", name).objects.using(alias)
        for start in range(0, len(hidden), AT_ONCE):
            quoted.filter(message_id__in=hidden[start : start + AT_ONCE]).update(quote="")


def _went_to_a_list(row: Any, lists: set[str]) -> bool:
    if row.tables:  # a robot's report
        return True
    try:
        raw = _FROM_LINE.sub(b"", zlib.decompress(bytes(row.source.compressed)))
        mail = email.message_from_bytes(raw.partition(b"\n\n")[0], policy=email.policy.compat32)
        values = [str(value) for name in ("To", "Cc") for value in mail.get_all(name, [])]
        addresses = [address.lower() for _, address in getaddresses(values)]
    except Exception:  # hostile mail: what can't be read is not shown
        return False
    archive = row.source.archive
    from_list = archive is not None and archive.kind == "file" and bool(mail.get("List-Id"))
    return from_list or any(address in lists or _LIST_HOST.search(address) for address in addresses)


class Migration(migrations.Migration):
    dependencies = [
        ("tracker", "0014_rate_calendars"),
    ]

    operations = [
        migrations.AddField(
            model_name="archive",
            name="kind",
            field=models.TextField(
                choices=[("public", "public"), ("file", "file"), ("delivery", "delivery")], default="file"
            ),
        ),
        migrations.AddField(
            model_name="message",
            name="public",
            field=models.BooleanField(
                default=False, help_text="a public archive has it, or a list got it: shown to everybody"
            ),
        ),
        migrations.RunPython(tell_kinds, migrations.RunPython.noop),
        migrations.RunPython(tell_public_mail, migrations.RunPython.noop),
        migrations.RunPython(make_again, migrations.RunPython.noop),
    ]
