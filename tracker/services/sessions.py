"""Sessions in the database, with whose they are: a sign-out, an operator or their age ends them.

Who is signed out costs no query. SESSION_ENGINE names this module.
"""

from typing import Any

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.utils import timezone

from tracker.models import Session


class SessionStore(DatabaseStore):
    """Django's own store, which also records whose session it is."""

    @classmethod
    def get_model_class(cls) -> type[Session]:
        return Session

    def create_model_instance(self, data: dict[str, Any]) -> Session:
        row = super().create_model_instance(data)
        assert isinstance(row, Session)
        account = str(data.get(SESSION_KEY, ""))
        row.account = int(account) if account.isdecimal() else None
        return row

    def cycle_key(self) -> None:
        """Give the session a new key, when somebody signs in; sessions that have expired go."""
        super().cycle_key()
        Session.objects.filter(expire_date__lt=timezone.now()).delete()


def end_all(account: int) -> int:
    """End all sessions of a user. Return how many there were."""
    ended, _ = Session.objects.filter(account=account).delete()
    return ended
