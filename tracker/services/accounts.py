"""Sign-in links: mailed to an address that the tracker knows, valid once, for 15 minutes."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction

from tracker.models import Message, Report, SignIn
from tracker.models.mail import PEOPLE
from tracker.services.accounts import signed_links
from tracker.services.accounts.addresses import is_of_a_person
from tracker.services.sql import locks
from tracker.services.sql.locks import Lock

GOOD_FOR = timedelta(minutes=15)
WINDOW = timedelta(hours=1)
# Links per address while one is valid: whoever is asked for by others has a valid link in their mailbox.
PER_EMAIL_ADDRESS = 3
PER_NETWORK_ADDRESS = 10  # per WINDOW
IN_ALL = 500  # per WINDOW, so that no table and no mailbox of strangers fills
_KEPT = timedelta(days=30)
_SALT = "perfwork.sign-in"


def request_link(address: str, network_address: str, now: datetime) -> SignIn | None:
    """Record a request for a link from a network address; return None if it can be nobody's, or over the limit.

    Whether the address is known is looked up when the link is mailed: here, known and unknown ones take equally long.
    """
    address = address.strip().lower()[:254]
    if not is_of_a_person(address):
        return None
    with transaction.atomic():
        locks.take(Lock.SIGN_IN_LINKS)  # so that concurrent requests are counted one by one
        SignIn.objects.filter(asked_at__lt=now - _KEPT).delete()
        rows = SignIn.objects.filter(for_opt_out=False)
        if rows.filter(address=address, asked_at__gt=now - GOOD_FOR).count() >= PER_EMAIL_ADDRESS:
            return None
        if rows.filter(asked_from=network_address, asked_at__gt=now - WINDOW).count() >= PER_NETWORK_ADDRESS:
            return None
        if rows.filter(asked_at__gt=now - WINDOW).count() >= IN_ALL:
            return None
        return SignIn.objects.create(address=address, asked_from=network_address[:60], asked_at=now)


def is_known(address: str) -> bool:
    """Return whether the address is a user's, a culprit author's, or the verified author's of a mail.

    Staff must sign in with a password, so that access to their mail is not enough to become them.
    """
    if not is_of_a_person(address):
        return False
    users = _users(address)
    if any(user.is_staff or user.is_superuser or not user.is_active for user in users):
        return False
    if users or Report.objects.filter(author=address).exists():
        return True
    # Anybody can forge a From line, so only verified mail counts.
    return Message.objects.filter(author_email=address, kind__in=PEOPLE, trust="pass").exists()


def _users(address: str) -> list[User]:
    """Return the users with this address, compared in Python, since databases differ in case folding."""
    found = User.objects.filter(email__iexact=address).order_by("pk")
    return [user for user in found if user.email.lower() == address]


def token(link: SignIn) -> str:
    """Return the token of a link."""
    return signed_links.token(link, _SALT)


def find(token: str, now: datetime) -> SignIn | None:
    """Return the link of a valid token; None if it is forged, expired or used."""
    valid = SignIn.objects.filter(for_opt_out=False, used_at__isnull=True, asked_at__gt=now - GOOD_FOR)
    return signed_links.find(token, _SALT, valid)


def use(link: SignIn, now: datetime) -> User | None:
    """Use up a link and return its user, created if new; None if it was used meanwhile or is no longer allowed."""
    if not SignIn.objects.filter(pk=link.pk, used_at__isnull=True).update(used_at=now) or not is_known(link.address):
        return None
    if found := _users(link.address):
        return found[0]
    user, made = User.objects.get_or_create(username=link.address[:150], defaults={"email": link.address})
    if not made:
        return None  # another account has this username
    user.set_unusable_password()
    user.save(update_fields=["password"])
    return user
