"""The admin of accounts: users, whose sessions can be ended; sessions, password attempts and API keys."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from tracker import models
from tracker.admin.read_only import ReadOnly
from tracker.pages.accounts.forms import AdminPasswordForm
from tracker.services.accounts import api_keys, sessions

admin.site.login_form = AdminPasswordForm
admin.site.unregister(User)


@admin.register(User)
class Accounts(UserAdmin):
    """Django's own, with an action that signs people out everywhere."""

    actions = ("end_sessions",)

    @admin.action(description="Sign out everywhere: end all sessions", permissions=["change"])
    def end_sessions(self, request: HttpRequest, users: QuerySet[User]) -> None:
        ended = sum(sessions.end_all(user.pk) for user in users)
        self.message_user(request, f"Sessions ended: {ended}")


@admin.register(models.Session)
class SessionAdmin(ReadOnly):
    """Who is signed in. The keys are secrets, and not shown."""

    list_display = ("account", "expire_date")
    list_display_links = None
    exclude = ("session_key", "session_data")


@admin.register(models.PasswordAttempt)
class PasswordAttemptAdmin(ReadOnly):
    list_display = ("account", "network", "at")
    ordering = ("-at",)


@admin.register(models.ApiKey)
class ApiKeyAdmin(ReadOnly):
    """Keys of programs; `manage.py apikey create` makes one."""

    list_display = ("name", "beginning", "scopes", "producer", "created_at", "used_at", "revoked_at")
    exclude = ("digest",)
    actions = ("revoke",)

    @admin.action(description="Revoke: it is not accepted any more", permissions=["revoke"])
    def revoke(self, request: HttpRequest, keys: QuerySet[models.ApiKey]) -> None:
        now = timezone.now()
        revoked = sum(api_keys.revoke(key.name, now) for key in keys)
        self.message_user(request, f"Keys revoked: {revoked}")

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)


@admin.register(models.Webhook)
class WebhookAdmin(ReadOnly):
    list_display = ("url", "owner", "query", "stopped", "silent", "events_until")
    exclude = ("secret",)


@admin.register(models.WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnly):
    list_display = ("webhook", "key", "state", "attempts", "status", "error", "answered_at")
    list_filter = ("state",)


@admin.register(models.Subscription)
class SubscriptionAdmin(ReadOnly):
    list_display = ("owner", "query", "often", "mailed_until")
