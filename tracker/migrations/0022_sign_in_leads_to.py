"""Where a link to sign in leads."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tracker", "0021_edited_mail"),
    ]

    operations = [
        migrations.AddField(
            model_name="signin",
            name="leads_to",
            field=models.TextField(default="/", help_text="the page of ours on which it was asked for"),
        ),
    ]
