"""A suggestion that would change nothing any more is withdrawn, by itself."""

from typing import Any

from django.db import migrations, models

DECISIONS = ["open", "withdrawn", "accepted", "changed", "rejected"]


def fold_anew(apps: Any, editor: Any) -> None:
    """What is folded from now on withdraws suggestions, and counts more as an answer. An empty database needs none."""
    folding = apps.get_model("tracker", "Folding").objects.using(editor.connection.alias)
    folding.update(folded_to=0)
    if not apps.get_model("tracker", "Report").objects.using(editor.connection.alias).exists():
        folding.update(version=6)


def reopen(apps: Any, editor: Any) -> None:
    suggestions = apps.get_model("tracker", "Suggestion").objects.using(editor.connection.alias)
    suggestions.filter(decision="withdrawn").update(decision="open")


def decision() -> Any:
    return models.TextField(choices=[(name, name.capitalize()) for name in DECISIONS], default="open")


class Migration(migrations.Migration):
    dependencies = [("tracker", "0023_mailed_suggestions")]

    operations = [
        migrations.RemoveConstraint(model_name="offeredreport", name="offer_decision_is_known"),
        migrations.RemoveConstraint(model_name="suggestion", name="decision_is_known"),
        migrations.RemoveConstraint(model_name="suggestion", name="a_decision_names_a_person"),
        migrations.AlterField(model_name="offeredreport", name="decision", field=decision()),
        migrations.AlterField(model_name="suggestion", name="decision", field=decision()),
        migrations.AddConstraint(
            model_name="offeredreport",
            constraint=models.CheckConstraint(
                condition=models.Q(decision__in=DECISIONS), name="offer_decision_is_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="suggestion",
            constraint=models.CheckConstraint(condition=models.Q(decision__in=DECISIONS), name="decision_is_known"),
        ),
        migrations.AddConstraint(
            model_name="suggestion",
            constraint=models.CheckConstraint(
                condition=models.Q(decision__in=("open", "withdrawn")) | ~models.Q(decided_by=""),
                name="a_decision_names_a_person",
            ),
        ),
        migrations.RunPython(fold_anew, reopen),
    ]
