"""Signing in by an emailed link or a password, signing out, opting out of mail, and saved views.

`/sign-in/`, `/sign-in/password/` (with the same form as `/admin/`), `/sign-out/`, `/no-mail/` and `/views/`. A link
from a mail takes effect by a POST only, so that link scanners do not use it up.
"""

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

from tracker.models import SavedView
from tracker.pages.http import cleaned, error_response, next_url, path_of, redirect_back, sign_in_required
from tracker.pages.triage.filters import InvalidQuery, TriageQuery
from tracker.services import accounts
from tracker.services.accounts import CHANGE_REPORTS, TOO_MANY, client_address, network_of
from tracker.services.enqueue import enqueue

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


@require_POST
@sign_in_required
def save_view(request: HttpRequest) -> HttpResponse:
    """Save a query under a name, replacing the user's view of the same name."""
    assert isinstance(request.user, User)
    name, query_string = " ".join(cleaned(request.POST, "name", 80).split()), cleaned(request.POST, "query")
    if not name:
        return error_response("name: expected a name for the view; found none")
    try:
        query = TriageQuery.from_query(QueryDict(query_string), timezone.now())
    except InvalidQuery as error:
        return error_response(str(error))
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
