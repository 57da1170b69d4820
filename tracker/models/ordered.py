"""JSON whose objects keep the order of their keys in every database: PostgreSQL's jsonb sorts them by their length."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.db import models

if TYPE_CHECKING:
    _Text = models.JSONField  # what may be put into it, and comes out
else:
    _Text = models.TextField


class OrderedJSONField(_Text):
    """A JSON value, kept as text; nothing can be asked of what is in it."""

    def from_db_value(self, value: str | None, *_: object) -> Any:
        return None if value is None else json.loads(value)

    def to_python(self, value: Any) -> Any:
        return json.loads(value) if isinstance(value, str) else value

    def get_prep_value(self, value: Any) -> Any:
        return value if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    def value_to_string(self, obj: models.Model) -> str:
        return str(self.get_prep_value(self.value_from_object(obj)))
