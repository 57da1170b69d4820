"""How likely a suggestion is right becomes a column, out of the text that gives the reasons; and what of a job is
private, and which mails are copies, is kept with more care.
"""

import re
from typing import Any

from django.db import migrations, models

_LIKELY = re.compile(r"(\d{1,3}) % likely(?:: )?")


def take_out(apps: Any, editor: Any) -> None:
    """Take "62 % likely: " out of each reason."""
    suggestions = apps.get_model("tracker", "Suggestion").objects.using(editor.connection.alias)
    changed = []
    for suggestion in suggestions.filter(why__contains="% likely").only("why").iterator(2000):
        if match := _LIKELY.match(suggestion.why):
            suggestion.certainty, suggestion.why = int(match[1]), suggestion.why[match.end() :]
            changed.append(suggestion)
    suggestions.bulk_update(changed, ["certainty", "why"], batch_size=500)


class Migration(migrations.Migration):
    dependencies = [
        ("tracker", "0018_jobs_by_people"),
    ]

    operations = [
        migrations.AddField(
            model_name="suggestion",
            name="certainty",
            field=models.PositiveSmallIntegerField(
                blank=True, help_text="how likely it is right, in per cent", null=True
            ),
        ),
        migrations.AlterField(
            model_name="suggestion",
            name="why",
            field=models.TextField(blank=True, help_text="the words that weigh most; or who said so"),
        ),
        migrations.AddField(
            model_name="labjob",
            name="parts_private",
            field=models.BooleanField(default=False, help_text="whether one of these mails is for operators only"),
        ),
        migrations.AlterField(
            model_name="message",
            name="signature",
            field=models.TextField(
                blank=True,
                db_index=True,
                help_text="identifies what is signed, if the Message-ID is not: copies have the same one",
            ),
        ),
        migrations.RunPython(take_out, migrations.RunPython.noop),
    ]
