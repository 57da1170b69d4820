"""What models share: natural keys, JSON that keeps its order, and the columns of a lease."""

import json
from enum import StrEnum
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from django.db import models

Row = TypeVar("Row", bound=models.Model)


def values(enum: type[StrEnum]) -> list[str]:
    """The plain strings of an enum, for a constraint: migrations shall not import it."""
    return [member.value for member in enum]


class NaturalManager(models.Manager[Row]):
    """Finds a row by the fields in its model's NATURAL; `a__b` follows the relation `a`."""

    def get_by_natural_key(self, *values: Any) -> Row:
        return self.get(**dict(zip(self.model.NATURAL, values, strict=True)))  # type: ignore[attr-defined]


class NaturalModel(models.Model):
    """A row that fixtures name by the fields in NATURAL, since its primary key differs between databases."""

    NATURAL: ClassVar[tuple[str, ...]]

    objects: ClassVar[NaturalManager[Self]] = NaturalManager()

    class Meta:
        abstract = True

    def natural_key(self) -> tuple[Any, ...]:
        return tuple(reduce(getattr, name.split("__"), self) for name in self.NATURAL)


if TYPE_CHECKING:
    _Text = models.JSONField  # for its types: any JSON value in and out
else:
    _Text = models.TextField


class OrderedJSONField(_Text):
    """A JSON value stored as text; its contents can't be queried."""

    def deconstruct(self) -> Any:
        """In migrations it is what the database sees: text."""
        name, _, positional, keywords = super().deconstruct()
        return name, "django.db.models.TextField", positional, keywords

    def from_db_value(self, value: str | None, *_: object) -> Any:
        return None if value is None else json.loads(value)

    def to_python(self, value: Any) -> Any:
        return json.loads(value) if isinstance(value, str) else value

    def get_prep_value(self, value: Any) -> Any:
        return value if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    def value_to_string(self, obj: models.Model) -> str:
        return str(self.get_prep_value(self.value_from_object(obj)))


class Lease(models.Model):
    """A row that one worker at a time may hold, for a limited time; if the worker dies, the lease expires."""

    lease_until = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveIntegerField(default=0)

    class Meta:
        abstract = True


class NamedLease(Lease):
    """A row whose holder is known, so that nobody waits for a dead one."""

    holder = models.TextField(blank=True, help_text="the process that reads it, or last read it")

    class Meta:
        abstract = True
