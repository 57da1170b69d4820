"""The roles that people can be given: groups, whose rights are in tracker/people/roles.py."""

from django.db import migrations


def make(apps, schema_editor):
    group = apps.get_model("auth", "Group")
    for name in ("triager", "operator"):
        group.objects.get_or_create(name=name)


class Migration(migrations.Migration):
    dependencies = [("tracker", "0012_lines_of_tables"), ("auth", "0012_alter_user_first_name_max_length")]
    operations = [migrations.RunPython(make, migrations.RunPython.noop)]
