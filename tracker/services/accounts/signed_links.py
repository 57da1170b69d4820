"""Tokens of mailed links: signed, so that the database alone is not enough to make one; each kind has its salt."""

from __future__ import annotations

from django.core import signing
from django.db.models import QuerySet

from tracker.models import SignIn


def token(link: SignIn, salt: str) -> str:
    """Return the token of a link; only the mail to the address has it."""
    return signing.dumps(link.pk, salt=salt)


def find(token: str, salt: str, links: QuerySet[SignIn]) -> SignIn | None:
    """Return the one of these links that a token names; None if it is forged or of another kind."""
    try:
        return links.filter(pk=signing.loads(token, salt=salt)).first()
    except signing.BadSignature:
        return None
