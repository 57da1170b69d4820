"""Accounts: signing in by an emailed link or a password, signing out, opting out of mail, saved views, and who may do
what.

`/sign-in/`, `/sign-in/password/` (with the same form as `/admin/`), `/sign-out/`, `/no-mail/`, `/views/` and
`/operating/people/`, where operators give roles and make the keys of programs. A link from a mail takes effect by a
POST only, so that link scanners do not use it up; a new key is shown once.
"""

import logging

from django.contrib import messages
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth import login, logout
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_POST

from tracker.domain.events import InvalidInput
from tracker.models import ApiKey, SavedView
from tracker.pages.http import (
    cleaned,
    error_response,
    next_url,
    path_of,
    permission_required,
    redirect_back,
    sign_in_required,
    username,
)
from tracker.pages.triage.filters import TriageQuery
from tracker.services import accounts
from tracker.services.accounts import CHANGE_REPORTS, SEND, TOO_MANY, Scope, UserRole, client_address, network_of
from tracker.services.installation import enqueue

log = logging.getLogger(__name__)

# --- Password forms ---


class PasswordForm(AuthenticationForm):
    """Django's form, which also says when there were too many attempts."""

    error_messages = {**AuthenticationForm.error_messages, "invalid_login": "Wrong username or password."}

    def get_invalid_login_error(self) -> ValidationError:
        """Return what is said about an attempt that failed."""
        if getattr(self.request, "too_many_attempts", False):
            return ValidationError(TOO_MANY, code="too_many_attempts")
        return super().get_invalid_login_error()


class AdminPasswordForm(PasswordForm, AdminAuthenticationForm):
    """The same for the admin, which only staff may enter."""


# --- Views ---

MOST_VIEWS = 50  # per user


@never_cache
def sign_in(request: HttpRequest) -> HttpResponse:
    """Ask for an address, and mail a link to it. The response does not reveal whether the address is known."""
    if request.method == "POST":
        address = cleaned(request.POST, "address", 254)
        if accounts.request_link(
            address, network_of(client_address(request)), timezone.now(), path_of(next_url(request))
        ):
            enqueue("send_links")
        return render(request, "sign_in.html", {"sent_to": address})
    return render(request, "sign_in.html")


class ByPassword(LoginView):
    """Sign in with a username and a password; 429 after too many attempts."""

    template_name = "sign_in_by_password.html"
    redirect_authenticated_user = True
    authentication_form = PasswordForm

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        response = super().form_invalid(form)
        if getattr(self.request, "too_many_attempts", False):
            response.status_code = 429
        return response


by_password = ByPassword.as_view()


@never_cache
@sensitive_variables()
def by_link(request: HttpRequest, token: str) -> HttpResponse:
    """POST signs in. GET only asks for confirmation, so that link scanners do not use up links."""
    link = accounts.find_sign_in(token, timezone.now())
    if link is not None and request.method != "POST":
        return render(request, "sign_in_by_link.html", {"link": link})
    user = accounts.use_sign_in(link, timezone.now()) if link else None
    if user is None:
        return render(request, "sign_in_by_link.html", status=410)
    assert link is not None
    login(request, user)
    return redirect(link.leads_to)


@never_cache
@sensitive_variables()
def confirm_opt_out(request: HttpRequest, token: str) -> HttpResponse:
    """POST stops all mail to the address that the link was mailed to; GET asks for confirmation."""
    link = accounts.find_opt_out(token, timezone.now())
    if link is None:
        return render(request, "opt_out.html", status=410)
    if request.method == "POST":
        accounts.use_opt_out(link, timezone.now())
    return render(request, "opt_out.html", {"link": link, "done": request.method == "POST"})


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    logout(request)
    return redirect("releases")


LONGEST_QUERY = 10_000  # characters


@require_POST
@sign_in_required
def save_view(request: HttpRequest) -> HttpResponse:
    """Save a query under a name, replacing the user's view of the same name."""
    assert isinstance(request.user, User)
    name = " ".join(cleaned(request.POST, "name", 80).split())
    query_string = cleaned(request.POST, "query", LONGEST_QUERY + 1)
    if not name:
        return error_response("name: expected a name for the view; found none")
    if len(query_string) > LONGEST_QUERY:
        return error_response(f"query: expected at most {LONGEST_QUERY} characters")
    query = TriageQuery.from_query(QueryDict(query_string), timezone.now())
    views = SavedView.objects.filter(owner=request.user)
    if views.exclude(name=name).count() >= MOST_VIEWS:
        return error_response(f"name: you have {MOST_VIEWS} views; delete one first")
    shared = request.POST.get("shared") == "on"
    if shared and not request.user.has_perm(CHANGE_REPORTS):
        return error_response("shared: only triagers can share views with everyone", 403)
    values = {"query": query.text, "shared": shared, "saved_at": timezone.now()}
    SavedView.objects.update_or_create(owner=request.user, name=name, defaults=values)
    messages.info(request, f"Saved as {name}.")
    return redirect_back(request)


@require_POST
@sign_in_required
def delete_view(request: HttpRequest, pk: int) -> HttpResponse:
    SavedView.objects.filter(pk=pk, owner=request.user.pk).delete()
    return redirect_back(request)


# --- `/operating/people/`: who may do what, and the keys of programs ---
# Operators invite people, who get in by a mailed link, change their roles, and shut accounts out; they make and revoke
# keys, whose tokens are shown once. Superusers are changed in the admin. `people` and `apikey` do the same.

MOST = 500  # accounts, and keys
SCOPES = (Scope.RESULTS, Scope.EVIDENCE, Scope.JOBS)  # a key for triage is made by the command, for a named person


@permission_required(SEND, "only operators see and change who may do what")
def people(request: HttpRequest) -> HttpResponse:
    """Show accounts and keys; do what a button says: `do`, and the `name` or `address` that it is about."""
    token = ""
    if request.method == "POST":
        if request.POST.get("do") != "key":
            messages.info(request, _done(request))
            return redirect("people")
        token = _new_key(request)
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
