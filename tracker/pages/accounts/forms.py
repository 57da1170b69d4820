"""The form for signing in with a password, at /sign-in/password/ and at /admin/."""

from __future__ import annotations

from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError

from tracker.services.accounts.passwords import TOO_MANY


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
