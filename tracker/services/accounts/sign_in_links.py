"""Links to sign in with: mailed to an address that the tracker knows, good for a quarter of an hour, and once."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.core import signing
from django.db import transaction

from tracker.models import Message, Report, SignIn
from tracker.models.mail import PEOPLE
from tracker.services import locks
from tracker.services.accounts.addresses import is_of_a_person
from tracker.services.locks import Lock

GOOD_FOR = timedelta(minutes=15)
WINDOW = timedelta(hours=1)
TO_AN_ADDRESS, FROM_A_PLACE = 3, 10  # links in a window
_SALT = "perfwork.sign-in"


def ask(address: str, place: str, now: datetime) -> SignIn | None:
    """Note that somebody at a network address wants a link; None where the address is not known, or asks too often."""
    address = address.strip().lower()
    if not _is_known(address):
        return None
    with transaction.atomic():
        locks.take(Lock.SIGN_IN_LINKS)  # so that many at once are counted one after the other
        lately = SignIn.objects.filter(asked_at__gt=now - WINDOW)
        if lately.filter(address=address).count() >= TO_AN_ADDRESS:
            return None
        if lately.filter(asked_from=place).count() >= FROM_A_PLACE:
            return None
        return SignIn.objects.create(address=address, asked_from=place[:60], asked_at=now)


def _is_known(address: str) -> bool:
    """Whether it belongs to somebody: an author of a culprit, of a mail that was proven to be his, or a user. Those who
    run the place sign in with passwords: who can read their mail shall not be them.
    """
    if not is_of_a_person(address):
        return False
    users = _users(address)
    if any(user.is_staff or user.is_superuser or not user.is_active for user in users):
        return False
    if users or Report.objects.filter(author=address).exists():
        return True
    # What a From line says alone, anybody can write.
    return Message.objects.filter(author_email=address, kind__in=PEOPLE, trust="pass").exists()


def _users(address: str) -> list[User]:
    """Those of this address, compared here: databases have their own ideas of upper and lower case."""
    found = User.objects.filter(email__iexact=address).order_by("pk")
    return [user for user in found if user.email.lower() == address]


def token(link: SignIn) -> str:
    """What stands in the link: signed, so that the database holds nothing to sign in with."""
    return signing.dumps(link.pk, salt=_SALT)


def find(token: str, now: datetime) -> SignIn | None:
    """The link of a token while it is good; None for a forged, an old or a used one."""
    try:
        pk = signing.loads(token, salt=_SALT)
    except signing.BadSignature:
        return None
    return SignIn.objects.filter(pk=pk, used_at__isnull=True, asked_at__gt=now - GOOD_FOR).first()


def use(link: SignIn, now: datetime) -> User | None:
    """Use a link up; who he is, made known where he is new. None where somebody was faster, or he may not any more."""
    if not SignIn.objects.filter(pk=link.pk, used_at__isnull=True).update(used_at=now) or not _is_known(link.address):
        return None
    if found := _users(link.address):
        return found[0]
    user, made = User.objects.get_or_create(username=link.address[:150], defaults={"email": link.address})
    if not made:
        return None  # another account has taken this name
    user.set_unusable_password()
    user.save(update_fields=["password"])
    return user
