"""The Celery app: periodic tasks, each of which finds its work in the database (DESIGN rule 7)."""

from __future__ import annotations

import os

from celery import Celery
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tracker.settings")

app = Celery("perfwork")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.update(
    task_acks_late=True,
    task_ignore_result=True,
    task_soft_time_limit=3600,
    task_time_limit=3700,
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
    timezone="UTC",
)
app.autodiscover_tasks(["bot"])

# A lost task is enqueued again at the next beat, so that one older than a beat can expire.
app.conf.beat_schedule = {
    name: {
        "task": name,
        "schedule": settings.PERFWORK_PERIOD,
        "options": {"expires": max(10.0, settings.PERFWORK_PERIOD)},
    }
    for name in ("take_results", "read_archives", "track_trees", "send_mail")
}
