"""Natural keys: rows are known by what they are, so that a fixture can be loaded twice and in any database."""

from __future__ import annotations

from typing import Any, TypeVar

from django.db import models

Row = TypeVar("Row", bound=models.Model)


class NaturalManager(models.Manager[Row]):
    """Finds a row by the fields that its class names in NATURAL; `a__b` asks the row behind a."""

    def get_by_natural_key(self, *values: Any) -> Row:
        return self.get(**dict(zip(self.model.NATURAL, values, strict=True)))  # type: ignore[attr-defined]
