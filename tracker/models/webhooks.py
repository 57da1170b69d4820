"""Webhooks: addresses of other programs that are told of new events, and what was sent to each."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from tracker.models.reports import Event


class Webhook(models.Model):
    """An address that gets the new events of the reports that match a search; `query` "": of all reports."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="webhooks")
    url = models.TextField()
    query = models.TextField(blank=True)
    secret = models.TextField(help_text="whsec_ and the key in base64, which signatures are made with")
    created_at = models.DateTimeField()
    events_until = models.DateTimeField(help_text="events that were recorded until then have their deliveries")
    stopped = models.TextField(blank=True, help_text="why nothing is sent any more")
    silent = models.PositiveIntegerField(default=0, help_text="attempts in a row that got no answer")
    retry_at = models.DateTimeField(help_text="nothing is sent before")

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["owner", "url", "query"], name="a_webhook_is_made_once")]

    def __str__(self) -> str:
        return self.url


class DeliveryState(models.TextChoices):
    """What became of a delivery. `failed`: given up."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"


class WebhookDelivery(models.Model):
    """One event for one webhook. The body is made once, so that every attempt sends the same bytes."""

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    event = models.ForeignKey(Event, null=True, on_delete=models.SET_NULL, related_name="+")
    key = models.TextField(help_text="the same at every attempt, so that the receiver can tell a repeat")
    body = models.TextField()
    state = models.TextField(choices=DeliveryState.choices, default=DeliveryState.WAITING)
    attempts = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    next_at = models.DateTimeField(help_text="not tried before")
    answered_at = models.DateTimeField(null=True)
    status = models.PositiveIntegerField(null=True, help_text="the HTTP status of the last answer")
    error = models.TextField(blank=True)

    class Meta:
        ordering = ["pk"]
        verbose_name_plural = "webhook deliveries"
        constraints = [
            models.UniqueConstraint(fields=["webhook", "key"], name="an_event_is_delivered_once"),
            models.CheckConstraint(condition=models.Q(state__in=DeliveryState.values), name="delivery_state_is_known"),
        ]
        indexes = [
            models.Index(fields=["webhook", "next_at"], condition=models.Q(state="waiting"), name="deliveries_due")
        ]

    def __str__(self) -> str:
        return f"{self.key}: {self.state}"
