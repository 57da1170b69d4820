"""Which recipients of a mail are maintainers: a column of its own, filled from the reasons of mails composed before."""

from typing import Any

from django.db import migrations, models


def fill(apps: Any, editor: Any) -> None:
    mails = apps.get_model("tracker", "OutgoingMail").objects.using(editor.connection.alias)
    changed = []
    for mail in mails.only("pk", "people").iterator(chunk_size=500):
        mail.maintainers = [
            email for email, _, header, why in mail.people if header and why.startswith("maintainer of ")
        ]
        changed += [mail] if mail.maintainers else []
        if len(changed) >= 500:
            mails.bulk_update(changed, ["maintainers"])
            changed = []
    mails.bulk_update(changed, ["maintainers"])


class Migration(migrations.Migration):
    dependencies = [
        ("tracker", "0008_commit_maintainers"),
    ]

    operations = [
        migrations.AddField(
            model_name="outgoingmail",
            name="maintainers",
            field=models.JSONField(
                blank=True,
                default=list,
                help_text="which of them MAINTAINERS calls a maintainer of the culprit's files",
            ),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
