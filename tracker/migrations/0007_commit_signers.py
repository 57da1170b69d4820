"""Those who signed, reviewed or tested a culprit, from the trailers that are stored with it."""

import re
from typing import Any

from django.db import migrations, models

_TAGS = frozenset({"signed-off-by", "co-developed-by", "reviewed-by", "acked-by", "tested-by"})
_PERSON = re.compile(r'\s*"?([^"<>]{0,200}?)"?\s*<?([^<>\s@"]{1,100}@[^<>\s"]{1,200})>?')


def fill(apps: Any, schema_editor: Any) -> None:
    """Names in lower case, without punctuation, as mail is matched with them."""
    for commit in apps.get_model("tracker", "Commit").objects.exclude(trailers=[]).iterator():
        keys: list[str] = []
        for tag, value in commit.trailers:
            found = _PERSON.match(value) if tag.strip().lower() in _TAGS else None
            if found:
                keys.append(found[2].lower())
                name = " ".join(re.sub(r"[^\w\s'-]", " ", found[1]).split()).lower()
                keys += [name] if " " in name else []
        if keys:
            commit.signers = keys[:200]
            commit.save(update_fields=["signers"])
    if not apps.get_model("tracker", "Report").objects.exists():
        apps.get_model("tracker", "Folding").objects.update(version=2)  # names are cut by bytes, too


class Migration(migrations.Migration):
    dependencies = [("tracker", "0006_care_for_data")]

    operations = [
        migrations.AddField(
            model_name="commit",
            name="signers",
            field=models.JSONField(
                blank=True,
                default=list,
                help_text="addresses and names of those who signed, reviewed or tested it",
            ),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
