"""What a new installation starts with: the kernel releases up to now, and the groups that give people their rights."""

from datetime import UTC, datetime

from django.db import migrations

# The dates of the release tags of Linus Torvalds' tree. Tags of a followed tree add to them.
RELEASED = {
    "v4.19": "2018-10-22",
    "v4.20": "2018-12-23",
    "v5.0": "2019-03-03",
    "v5.1": "2019-05-05",
    "v5.2": "2019-07-07",
    "v5.3": "2019-09-15",
    "v5.4": "2019-11-24",
    "v5.5": "2020-01-26",
    "v5.6": "2020-03-29",
    "v5.7": "2020-05-31",
    "v5.8": "2020-08-02",
    "v5.9": "2020-10-11",
    "v5.10": "2020-12-13",
    "v5.11": "2021-02-14",
    "v5.12": "2021-04-25",
    "v5.13": "2021-06-27",
    "v5.14": "2021-08-29",
    "v5.15": "2021-10-31",
    "v5.16": "2022-01-09",
    "v5.17": "2022-03-20",
    "v5.18": "2022-05-22",
    "v5.19": "2022-07-31",
    "v6.0": "2022-10-02",
    "v6.1": "2022-12-11",
    "v6.2": "2023-02-19",
    "v6.3": "2023-04-23",
    "v6.4": "2023-06-25",
    "v6.5": "2023-08-27",
    "v6.6": "2023-10-29",
    "v6.7": "2024-01-07",
    "v6.8": "2024-03-10",
    "v6.9": "2024-05-12",
    "v6.10": "2024-07-14",
    "v6.11": "2024-09-15",
    "v6.12": "2024-11-17",
    "v6.13": "2025-01-19",
    "v6.14": "2025-03-24",
    "v6.15": "2025-05-25",
    "v6.16": "2025-07-27",
    "v6.17": "2025-09-28",
    "v6.18": "2025-11-30",
}
# The cycle after the last of them, so that what is reported today stands in a table.
CURRENT = "v6.19"
# The models that each group may change. The pages ask for these permissions: tracker/services/accounts.py.
GROUPS = {
    "triager": ("report", "suggestion"),
    "operator": ("report", "suggestion", "outgoingmail", "basketentry"),
}
NAMES = {"outgoingmail": "outgoing mail", "basketentry": "basket entry"}


def number(version):
    """The place of a release in the order of all versions (tracker/domain/versions.py, Version.number)."""
    major, minor = map(int, version[1:].split("."))
    return ((major * 10_000 + minor) * 1_000 + 999) * 10_000


def seed(apps, schema_editor):
    release = apps.get_model("tracker", "Release")
    for version, day in RELEASED.items():
        at = datetime.fromisoformat(day).replace(tzinfo=UTC, hour=23, minute=59)
        release.objects.get_or_create(version=version, defaults={"number": number(version), "released_at": at})
    release.objects.get_or_create(version=CURRENT, defaults={"number": number(CURRENT)})
    content_type, permission, group = (
        apps.get_model(*each) for each in (("contenttypes", "ContentType"), ("auth", "Permission"), ("auth", "Group"))
    )
    for name, models in GROUPS.items():
        row, _ = group.objects.get_or_create(name=name)
        for model in models:  # Django itself creates permissions only when all migrations have run
            kind, _ = content_type.objects.get_or_create(app_label="tracker", model=model)
            described = {"name": f"Can change {NAMES.get(model, model)}"}
            right, _ = permission.objects.get_or_create(
                content_type=kind, codename=f"change_{model}", defaults=described
            )
            row.permissions.add(right)


class Migration(migrations.Migration):
    dependencies = [
        ("tracker", "0001_schema"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]
    operations = [migrations.RunPython(seed, migrations.RunPython.noop)]
