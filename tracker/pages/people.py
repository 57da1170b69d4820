"""`/operating/people/`: who may do what, and the keys of programs.

Operators invite people, who get in by a mailed link, change their roles, and shut accounts out; they make and revoke
keys, whose tokens are shown once. Superusers are changed in the admin. `people` and `apikey` do the same.
"""

import logging

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from tracker.domain.events import InvalidInput
from tracker.models import ApiKey
from tracker.pages.http import cleaned, error_response, permission_required, username
from tracker.services import accounts
from tracker.services.accounts import SEND, Scope, UserRole
from tracker.services.enqueue import enqueue

MOST = 500  # accounts, and keys
SCOPES = (Scope.RESULTS, Scope.EVIDENCE, Scope.JOBS)  # a key for triage is made by the command, for a named person
log = logging.getLogger(__name__)


@permission_required(SEND, "only operators see and change who may do what")
def people(request: HttpRequest) -> HttpResponse:
    """Show accounts and keys; do what a button says: `do`, and the `name` or `address` that it is about."""
    token = ""
    if request.method == "POST":
        try:
            if request.POST.get("do") == "key":
                token = _new_key(request)
            else:
                messages.info(request, _done(request))
                return redirect("people")
        except InvalidInput as mistake:
            return error_response(str(mistake))
    now = timezone.now()
    rows = accounts.people(MOST + 1)
    context = {
        "people": rows[:MOST],
        "more": len(rows) > MOST,
        "keys": ApiKey.objects.select_related("acts_for").order_by("-revoked_at", "name")[:MOST],
        "roles": list(UserRole),
        "scopes": SCOPES,
        "token": token,
        "now": now,
    }
    return render(request, "people.html", context)


def _done(request: HttpRequest) -> str:
    """Do what a button says, and return what to say of it. Raises InvalidInput."""
    by, now = username(request), timezone.now()
    name, role, do = (cleaned(request.POST, field, 200) for field in ("name", "role", "do"))
    if name == by and do in ("role", "revoke"):
        raise InvalidInput("name: nobody changes their own account; another operator can")
    if role and role not in list(UserRole):
        raise InvalidInput(f"role: expected {' or '.join(UserRole)}; found {role!r}")
    match do:
        case "invite":
            address = cleaned(request.POST, "address", 254).strip().lower()
            accounts.invite(address, UserRole(role or UserRole.TRIAGER))
            network = accounts.network_of(accounts.client_address(request))
            mailed = accounts.request_link(address, network, now) is not None
            if mailed:
                enqueue("send_links")
            said = f"{address} is invited, and gets a link by mail." if mailed else f"{address} has an account."
        case "role":
            accounts.give_role(name, UserRole(role) if role else None)
            said = f"{name} is {role} now." if role else f"{name} has no role now."
        case "revoke":
            keys = accounts.shut_out(name, now)
            said = f"{name} may sign in no more; {keys} key{'s' * (keys != 1)} revoked."
        case "revoke-key":
            if not accounts.revoke(name, now):
                raise InvalidInput(f"name: no valid key is named {name[:80]!r}")
            said = f"The key {name} is revoked."
        case _:
            raise InvalidInput(f"do: expected invite, role, revoke, key or revoke-key; found {do!r}")
    log.info("%s: %s", by, said)
    return said


def _new_key(request: HttpRequest) -> str:
    """Make a key, and return its token. Raises InvalidInput."""
    name, producer, days = (cleaned(request.POST, field, 200) for field in ("name", "producer", "days"))
    if days and not (days.isdecimal() and len(days) < 6):
        raise InvalidInput(f"days: expected a number, or nothing for a key that never expires; found {days!r}")
    scopes = [scope for scope in SCOPES if scope in request.POST.getlist("scope")]
    now = timezone.now()
    ends = accounts.key_ends(int(days or 0), now)
    _, token = accounts.create_api_key(name, scopes, producer, now, None, ends)
    log.info("%s made the key %s", username(request), name)
    return token
