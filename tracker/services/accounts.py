"""Who somebody is, and what they may do: addresses, API keys, passwords, mailed links, permissions.

Anybody may read. The groups triager and operator have the permissions below (0002_seed); superusers may do
everything. Authors, recipients, signers and maintainers may change the reports of their own culprits, and only a
personal address, one read by one person, counts. Whose subsystems are whose is learnt from MAINTAINERS as reports are
composed, for the page of what is theirs.

People sign in by a link, mailed to an address that the tracker knows, valid once, for 15 minutes; staff by a
password. Programs have keys: made once, shown once, stored as a hash, revoked at any time. Mailed links are signed,
so that the database alone is not enough to make one; each kind has its salt. An opt-out link goes to an address for
which an unproven mail asked to get no more. Tries to sign in are counted one by one under a lock, and cost two
queries beyond a limit; django-axes counts after the hash, so that parallel tries pass, and has one limit for
everything.
"""

import hashlib
import re
import secrets
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from ipaddress import IPv6Address, ip_address
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, Group, User
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Case, Count, F, Q, QuerySet, When
from django.http import HttpRequest
from django.utils import timezone

from tracker.domain.events import EventKind, InvalidInput, Role
from tracker.domain.text import is_a_list
from tracker.models import (
    ApiKey,
    Correspondent,
    Decision,
    Mailing,
    Maintainer,
    Message,
    PasswordAttempt,
    Report,
    Session,
    SignIn,
    Suggestion,
)
from tracker.models.mail import PEOPLE
from tracker.services import database
from tracker.services.database import Lock
from tracker.services.report_actions import Permit

# --- Personal addresses ---

# ASCII only, so that databases and mail servers agree on which addresses are equal; nothing that a header could take
# for an encoded word (RFC 2047).
_ADDRESS = re.compile(r"[\w.+\-!#$%&'*/?^`{|}~]+@[\w-]+(\.[\w-]+)+", re.ASCII)


# The note of a correspondent whose data was erased: what an archive still has of them does not come back.
ERASED = "erased on request"


def shown_messages(user: Any) -> Q:
    """Return which rows of Message a user may see: operators see all mail, others what is public."""
    return Q() if user.has_perm(SEND) else Q(public=True)


def is_of_a_person(address: str) -> bool:
    """Return whether a lowercase address can be personal: well-formed, not a list, and not our own."""
    if not _ADDRESS.fullmatch(address) or address != address.lower() or is_a_list(address):
        return False
    others = (settings.PERFWORK_BOT_ADDRESS, *settings.PERFWORK_ROBOTS, *settings.PERFWORK_BULLETINS)
    return address not in configured_lists().union(own.strip().lower() for own in others)


def configured_lists() -> frozenset[str]:
    """Return the lists that the settings name, whatever their hosts. A bulletin may go to a person."""
    lists = [
        settings.PERFWORK_LIST_ADDRESS,
        settings.PERFWORK_LKML,
        settings.PERFWORK_REGZBOT,
        *settings.PERFWORK_LISTS,
    ]
    lists += [name for names in settings.PERFWORK_TREE_LISTS.values() for name in names.split("+")]
    return frozenset(name.strip().lower() for name in lists) - {""}


# --- API keys ---

PREFIX = "perfwork_"  # so that scanners of leaked secrets, and people, know what it is
ANY_PRODUCER = "*"
MOST_A_MINUTE = 600  # requests of one key
MOST_DAYS = 3650  # for which one is valid
_MINUTE = timedelta(minutes=1)


class Scope(StrEnum):
    """What a key may do."""

    RESULTS = "results"
    EVIDENCE = "evidence"
    JOBS = "jobs"  # of the lab: claim them, and hand in their results
    TRIAGE = "triage"  # act on reports and decide on suggestions, for a person


def create_api_key(
    name: str,
    scopes: Sequence[Scope],
    producer: str,
    now: datetime,
    acts_for: User | None = None,
    expires_at: datetime | None = None,
) -> tuple[ApiKey, str]:
    """Return a new key and its token, which is not stored. Raises InvalidInput."""
    if not name.strip() or len(name) > 80:
        raise InvalidInput(f"name: expected 1 to 80 characters; found {name[:90]!r}")
    if not scopes:
        raise InvalidInput(f"scopes: expected one or more of {', '.join(Scope)}; found none")
    if Scope.RESULTS in scopes and not producer:
        raise InvalidInput("producer: expected the producer.name of the results, or * for any; found none")
    if (Scope.TRIAGE in scopes) != bool(acts_for):
        raise InvalidInput("user: the scope triage wants the person that the key acts for, and no other scope does")
    if ApiKey.objects.filter(name=name).exists():
        raise InvalidInput(f"name: there is a key named {name!r}; revoke keys, and give new ones other names")
    token = PREFIX + secrets.token_urlsafe(32)
    key = ApiKey.objects.create(
        name=name,
        digest=_digest(token),
        beginning=token[: len(PREFIX) + 4],
        scopes=[*map(str, scopes)],
        producer=producer[:200],
        created_at=now,
        acts_for=acts_for,
        expires_at=expires_at,
    )
    return key, token


def key_ends(days: int, now: datetime) -> datetime | None:
    """Return when a key expires that is valid for so many days; None for 0. Raises InvalidInput."""
    if not 0 <= days <= MOST_DAYS:
        raise InvalidInput(f"days: expected 1 to {MOST_DAYS}, or 0 for a key that never expires; found {days}")
    return now + timedelta(days=days) if days else None


def find_api_key(token: str, now: datetime) -> ApiKey | None:
    """Return the key of a token, and record its use to the minute; None if it is unknown, expired or revoked."""
    valid = ApiKey.objects.filter(Q(expires_at=None) | Q(expires_at__gt=now), revoked_at=None)
    key = valid.filter(digest=_digest(token)).select_related("acts_for").first()
    if key and (key.used_at is None or now - key.used_at > _MINUTE):
        ApiKey.objects.filter(pk=key.pk).update(used_at=now)
    return key


def count_request(key: ApiKey, now: datetime) -> int:
    """Count a request of a key; return 0, or the seconds to wait if it has made too many in this minute."""
    minute = now.replace(second=0, microsecond=0)
    own = ApiKey.objects.filter(pk=key.pk)
    # One statement: of requests at the same moment, one begins the minute and the others count.
    counted = Case(When(minute=minute, then=F("requests") + 1), default=1)
    has_room = ~Q(minute=minute) | Q(requests__lt=MOST_A_MINUTE)
    return 0 if own.filter(has_room).update(minute=minute, requests=counted) else 60 - now.second


def revoke(name: str, now: datetime) -> bool:
    """Revoke a key; return False if no valid key has this name."""
    return bool(ApiKey.objects.filter(name=name, revoked_at=None).update(revoked_at=now))


def _digest(token: str) -> str:
    """Return the hash of a token; its 256 random bits need no salt, and no slow hash."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


# --- Maintainers ---


def learn_maintainers(subsystem: str, addresses: Iterable[str]) -> None:
    """Record the maintainers of a subsystem; those that are known stay."""
    rows = [Maintainer(address=address.lower(), subsystem=subsystem) for address in addresses if subsystem]
    Maintainer.objects.bulk_create(rows, ignore_conflicts=True)


def subsystems_of(address: str) -> QuerySet[Maintainer, str]:
    """Return the subsystems that somebody maintains; none for no address."""
    return Maintainer.objects.filter(address=address.lower()).exclude(address="").values_list("subsystem", flat=True)


# --- Where a request comes from ---


def client_address(request: HttpRequest) -> str:
    """Return the client's network address; behind our proxy, the last one in X-Forwarded-For."""
    if settings.SECURE_PROXY_SSL_HEADER:
        return request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
    return str(request.META.get("REMOTE_ADDR", ""))


def network_of(address: str) -> str:
    """Return an IPv4 address as it is, of an IPv6 address the /48 that one site may have (RFC 6177)."""
    try:
        ip = ip_address(address.strip())
    except ValueError:
        return address[:60].replace("\0", "")
    if isinstance(ip, IPv6Address):
        return str(ip.ipv4_mapped) if ip.ipv4_mapped else f"{IPv6Address(int(ip) >> 80 << 80)}/48"
    return str(ip)


# --- Opt-out links ---

OPT_OUT_LINKS_GOOD_FOR = timedelta(days=14)
PER_ADDRESS, OPT_OUT_LINKS_IN_ALL = 1, 100  # links a day
_DAY = timedelta(days=1)
_OPT_OUT_LINKS_SALT = "perfwork.opt-out"


def request_opt_out_link(address: str, now: datetime) -> SignIn | None:
    """Record that an address is to be asked whether it wants no more mail; None if it is over the limit."""
    with transaction.atomic():
        database.take(Lock.SIGN_IN_LINKS)
        today = SignIn.objects.filter(for_opt_out=True, asked_at__gt=now - _DAY)
        if today.filter(address=address).count() >= PER_ADDRESS or today.count() >= OPT_OUT_LINKS_IN_ALL:
            return None
        return SignIn.objects.create(address=address, for_opt_out=True, asked_at=now)


def opt_out_token(link: SignIn) -> str:
    """Return the token of a link; only the mail to the address has it."""
    return signing.dumps(link.pk, salt=_OPT_OUT_LINKS_SALT)


def find_opt_out(token: str, now: datetime) -> SignIn | None:
    """Return the link of a valid token; None if it is forged or expired."""
    valid = SignIn.objects.filter(for_opt_out=True, asked_at__gt=now - OPT_OUT_LINKS_GOOD_FOR)
    return _named_by(token, _OPT_OUT_LINKS_SALT, valid)


def _named_by(token: str, salt: str, links: QuerySet[SignIn]) -> SignIn | None:
    """Return the one of these links that a token names; None if it is forged or of another kind."""
    try:
        return links.filter(pk=signing.loads(token, salt=salt)).first()
    except signing.BadSignature:
        return None


def use_opt_out(link: SignIn, now: datetime) -> None:
    """Record the opt-out; an operator's stop stays."""
    SignIn.objects.filter(pk=link.pk).update(used_at=now)
    values = {"mailing": Mailing.OPTED_OUT, "note": "confirmed by a link", "since": now}
    row, new = Correspondent.objects.get_or_create(address=link.address, defaults=values)
    if not new:
        Correspondent.objects.filter(pk=row.pk).exclude(mailing=Mailing.STOPPED).update(**values)


# --- People and roles ---


class UserRole(StrEnum):
    """What somebody may do beyond what anybody may, and an author about their own reports."""

    TRIAGER = "triager"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Person:
    """An account. `role`: triager, operator, superuser, or "" for who only reads and answers for their own reports."""

    name: str
    address: str
    role: str
    active: bool
    last_seen: datetime | None


def people(most: int) -> list[Person]:
    """Return the accounts, those with a role first, then by name. Two queries."""
    rows = User.objects.prefetch_related("groups").annotate(roles=Count("groups"))
    return [
        Person(user.username, user.email, _role_of(user), user.is_active, user.last_login)
        for user in rows.order_by("-is_superuser", "-roles", "username")[:most]
    ]


def invite(address: str, role: UserRole) -> User:
    """Return a new account, which gets in by the link that is mailed to its address. Raises InvalidInput."""
    address = address.strip().lower()
    if not is_of_a_person(address) or len(address) > 150:
        raise InvalidInput(f"address: expected that of a person, not of a list; found {address[:80]!r}")
    with transaction.atomic():
        user = next(iter(_users(address)), None)
        if user is None:
            user = _new_user(address)
            if user is None:
                raise InvalidInput(f"address: an account of another address is named {address}: see the admin")
        elif not user.is_active or _role_of(user):
            state = _role_of(user) if user.is_active else "revoked"
            raise InvalidInput(f"address: {address} has an account already, {user.username} ({state}): change its role")
        give_role(user.username, role)
    return user


def give_role(name: str, role: UserRole | None) -> None:
    """Give an account a role, or none; one that was revoked may sign in again. Raises InvalidInput."""
    user = _account(name)
    user.groups.set(Group.objects.filter(name=role) if role else [])
    User.objects.filter(pk=user.pk).update(is_active=True)


def shut_out(name: str, now: datetime) -> int:
    """Let an account sign in no more, end its sessions, and revoke its keys; return how many. Raises InvalidInput."""
    user = _account(name)
    User.objects.filter(pk=user.pk).update(is_active=False)
    end_sessions(user.pk)
    return ApiKey.objects.filter(acts_for=user, revoked_at=None).update(revoked_at=now)


def _account(name: str) -> User:
    user = User.objects.filter(username=name).first()
    if user is None:
        raise InvalidInput(f"name: no account is named {name[:80]!r}")
    if user.is_superuser or user.is_staff:
        raise InvalidInput(f"name: {user.username} is a superuser or staff, and is changed in the admin")
    return user


def _role_of(user: User) -> str:
    names = {group.name for group in user.groups.all()}
    return "superuser" if user.is_superuser else next((role for role in reversed(UserRole) if role in names), "")


# --- Passwords ---

# A hash takes 60 ms of CPU (PASSWORD_HASHERS), so tries are counted first. The limit for an account from anywhere is
# far above that of a network, and one try from each network is taken even then, so that no stranger locks anybody out.
WINDOW = timedelta(minutes=15)
PER_ACCOUNT_AND_NETWORK, PER_NETWORK, PER_ACCOUNT = 5, 30, 100  # tries per window
TOO_MANY = "Too many attempts. Try again in 15 minutes, or, unless you are staff, sign in by an emailed link."


class LimitedPasswords(ModelBackend):
    """Django's own users, groups and passwords, with limits. A request beyond them has `too_many_attempts` set."""

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **kwargs: Any
    ) -> User | None:
        """Return the user, or None. Raises PermissionDenied, which ends the sign-in, beyond a limit."""
        if request is None or not username:
            return super().authenticate(request, username, password, **kwargs)
        network = network_of(client_address(request))
        if not count_attempt(username, network, timezone.now()):
            request.too_many_attempts = True  # type: ignore[attr-defined]
            raise PermissionDenied(TOO_MANY)
        user = super().authenticate(request, username, password, **kwargs)
        if user:
            PasswordAttempt.objects.filter(account=username.lower()[:150], network=network).delete()
        return user


def count_attempt(username: str, network: str, now: datetime) -> bool:
    """Count a try; return False if there were too many. Tries beyond a limit are not counted: it ends by itself."""
    account = username.lower()[:150].replace("\0", "")
    with transaction.atomic():
        database.take(Lock.PASSWORDS)  # so that concurrent tries are counted one by one
        PasswordAttempt.objects.filter(at__lt=now - WINDOW).delete()
        recent = PasswordAttempt.objects.filter(at__gt=now - WINDOW)
        if recent.filter(network=network).count() >= PER_NETWORK:
            return False
        own = recent.filter(account=account)
        most_here = 1 if own.count() >= PER_ACCOUNT else PER_ACCOUNT_AND_NETWORK
        if own.filter(network=network).count() >= most_here:
            return False
        PasswordAttempt.objects.create(account=account, network=network, at=now)
    return True


# --- Permissions ---

CHANGE_REPORTS = "tracker.change_report"
DECIDE = "tracker.change_suggestion"
CHANGE_BASKET = "tracker.change_basketentry"
SEND = "tracker.change_outgoingmail"


def permit_of(user: AbstractBaseUser | AnonymousUser, kind: EventKind | None = None) -> Permit:
    """Return a function that gives the role in which a user may change a report, or None if they may not.

    Triagers may change any report; authors, recipients, signers and maintainers of the culprit only their own, and
    not whose commit it is (`kind`: the event that they would add).
    """
    everything = user.has_perm(CHANGE_REPORTS)  # type: ignore[union-attr]
    if kind is EventKind.CORRECTED and not everything:
        return lambda report: None
    address = str(getattr(user, "email", "")).lower()
    address = address if is_of_a_person(address) else "nobody's"

    def permit(report: Report) -> Role | None:
        if address in report.verified_authors:
            return Role.AUTHOR
        if everything:
            return Role.REPORTER
        return Role.MAINTAINER if address in report.verified_maintainers else None

    return permit


def own_reports(user: AbstractBaseUser | AnonymousUser, keys: Collection[int]) -> frozenset[int]:
    """Return which of these reports somebody may change who isn't a triager: one query, none for the anonymous."""
    if not (user.is_authenticated and keys):
        return frozenset()
    permit = permit_of(user)
    rows = Report.objects.filter(pk__in=keys).select_related("culprit")
    return frozenset(report.pk for report in rows if permit(report))


# --- Sign-in links ---

GOOD_FOR = timedelta(minutes=15)
SIGN_IN_LINKS_WINDOW = timedelta(hours=1)
# Links per address while one is valid: whoever is asked for by others has a valid link in their mailbox.
PER_EMAIL_ADDRESS = 3
PER_NETWORK_ADDRESS = 10  # per SIGN_IN_LINKS_WINDOW
IN_ALL = 500  # per SIGN_IN_LINKS_WINDOW, so that no table and no mailbox of strangers fills
_KEPT = timedelta(days=30)
_SALT = "perfwork.sign-in"


def request_link(address: str, network_address: str, now: datetime, leads_to: str = "/") -> SignIn | None:
    """Record a request for a link from a network address; return None if it can be nobody's, or over the limit.
    `leads_to`: the path of ours that whoever signs in by it comes to.

    Beyond the limits of a network and of all, an address that is known still gets a link whenever it has none that is
    valid: nobody's requests lock another out. The link goes to the address, and asking for one looks the same for all.
    """
    address = address.strip().lower()[:254]
    if not is_of_a_person(address):
        return None
    known = is_known(address)  # whether it matters or not: the time tells nothing of the limits
    with transaction.atomic():
        database.take(Lock.SIGN_IN_LINKS)  # so that concurrent requests are counted one by one
        SignIn.objects.filter(asked_at__lt=now - _KEPT).delete()
        rows = SignIn.objects.filter(for_opt_out=False)
        recent = rows.filter(asked_at__gt=now - SIGN_IN_LINKS_WINDOW)
        if rows.filter(address=address, asked_at__gt=now - GOOD_FOR).count() >= PER_EMAIL_ADDRESS:
            return None
        crowded = recent.filter(asked_from=network_address).count() >= PER_NETWORK_ADDRESS or recent.count() >= IN_ALL
        if crowded and not (known and not rows.filter(address=address, asked_at__gt=now - GOOD_FOR).exists()):
            return None
        asked = {"asked_from": network_address[:60], "asked_at": now, "leads_to": leads_to[:1000]}
        return SignIn.objects.create(address=address, **asked)


def is_known(address: str) -> bool:
    """Return whether the address is a user's, a culprit author's, or the verified author's of a mail.

    Staff must sign in with a password, so that access to their mail is not enough to become them.
    """
    if not is_of_a_person(address):
        return False
    users = _users(address)
    if any(user.is_staff or user.is_superuser or not user.is_active for user in users):
        return False
    # All are asked, so that the time tells nobody who is known. Anybody can forge a From line: verified mail counts.
    has_report = Report.objects.filter(author=address).exists()
    has_written = Message.objects.filter(author_email=address, kind__in=PEOPLE, trust="pass").exists()
    return bool(users) or has_report or has_written


def _users(address: str) -> list[User]:
    """Return the users with this address, compared in Python, since databases differ in case folding."""
    users = User.objects.filter(email__iexact=address).order_by("pk")
    return [user for user in users if user.email.lower() == address]


def _new_user(address: str) -> User | None:
    """Return a new account without a password; None if an account of another address has this name."""
    user, made = User.objects.get_or_create(username=address[:150], defaults={"email": address})
    if not made:
        return None
    user.set_unusable_password()
    user.save(update_fields=["password"])
    return user


def sign_in_token(link: SignIn) -> str:
    """Return the token of a link; only the mail to the address has it."""
    return signing.dumps(link.pk, salt=_SALT)


def find_sign_in(token: str, now: datetime) -> SignIn | None:
    """Return the link of a valid token; None if it is forged, expired or used."""
    valid = SignIn.objects.filter(for_opt_out=False, used_at__isnull=True, asked_at__gt=now - GOOD_FOR)
    return _named_by(token, _SALT, valid)


def use_sign_in(link: SignIn, now: datetime) -> User | None:
    """Use up a link and return its user, created if new; None if it was used meanwhile or is no longer allowed."""
    if not SignIn.objects.filter(pk=link.pk, used_at__isnull=True).update(used_at=now) or not is_known(link.address):
        return None
    if users := _users(link.address):
        return users[0]
    return _new_user(link.address)


# --- Links that decide on a suggestion ---

DECISION_LINKS_GOOD_FOR = timedelta(days=14)
_DECISION_LINKS_SALT = "decision on a suggestion"


@dataclass(frozen=True, slots=True)
class MailedDecision:
    """What a link that was mailed to a user decides, once they press its button."""

    suggestion: Suggestion
    decision: Decision
    user: User


def decision_token(suggestion: Suggestion, decision: Decision, user: User) -> str:
    """Return the token of a link; only the mail to the user has it."""
    return signing.dumps([suggestion.pk, decision.value, user.pk], salt=_DECISION_LINKS_SALT)


def find_decision(token: str) -> MailedDecision | None:
    """Return what a token decides; None if it is forged or expired, or if the user may no longer decide."""
    try:
        key, decision, user_key = signing.loads(token, salt=_DECISION_LINKS_SALT, max_age=DECISION_LINKS_GOOD_FOR)
    except signing.BadSignature:
        return None
    suggestion = Suggestion.objects.select_related("report__culprit").filter(pk=key).first()
    user = User.objects.filter(pk=user_key).first()
    if suggestion is None or user is None or not user.has_perm(DECIDE):  # which nobody has whose account is closed
        return None
    return MailedDecision(suggestion, Decision(decision), user)


# --- Sessions ---
# In the database, with whose they are: a sign-out, an operator or their age ends them. Who is signed out costs no
# query. SESSION_ENGINE names this module.


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


def end_sessions(account: int) -> int:
    """End all sessions of a user. Return how many there were."""
    ended, _ = Session.objects.filter(account=account).delete()
    return ended
