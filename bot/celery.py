"""The Celery app: periodic tasks, each of which finds its work in the database (DESIGN rule 7)."""

from __future__ import annotations

import os

from celery import Celery
from django.conf import settings
from kombu import Queue

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tracker.settings")

HOUR = 3600.0  # seconds
QUEUES = ("mail", "results", "archives", "git", "web", "opinions", "webhooks")
ROUTES = {
    "send_mail": "mail",
    "mail_faults": "web",  # it must not stand behind the mail that stalls
    "send_links": "web",  # somebody waits at a page
    "compose_reminders": "mail",
    "suggest_closings": "results",
    "take_results": "results",
    "fold_reports": "results",
    "read_archives": "archives",
    "read_archive": "archives",
    "clone_epochs": "git",
    "track_trees": "git",
    "track_tree": "git",
    "open_lab_jobs": "git",  # a patch is tried on a tree
    "call_webhooks": "webhooks",
    "call_webhook": "webhooks",
    "ask_second_opinions": "opinions",  # a language model may take a minute for each answer
}

app = Celery("perfwork", task_cls="bot.runtime.recorded_task:RecordedTask")
app.set_default()  # for every thread of a web server: the pages enqueue through Celery's current app
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.update(
    # Acknowledged when it begins: a lost task is enqueued again at the next beat, and RabbitMQ closes the channel of a
    # worker that has not acknowledged a task for half an hour (its consumer_timeout).
    task_acks_late=False,
    task_ignore_result=True,
    task_soft_time_limit=1500,
    task_time_limit=1560,
    # A queue for each kind of waiting: mail must never stand behind a fetch from a server that hangs.
    task_queues=[Queue(name) for name in QUEUES],
    task_default_queue="mail",
    task_routes={task: {"queue": queue} for task, queue in ROUTES.items()},
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
    timezone="UTC",
    # Events for flower and `celery events`, which cost nothing much at a few tasks a minute.
    worker_send_task_events=True,
    task_send_sent_event=True,
)
app.autodiscover_tasks(["bot"])

# A lost task is enqueued again at the next beat, so that one older than a beat can expire.
app.conf.beat_scheduler = "bot.scheduler:LeasedScheduler"
app.conf.beat_schedule = {
    name: {
        "task": name,
        "schedule": settings.PERFWORK_PERIOD,
        "options": {"expires": max(10.0, settings.PERFWORK_PERIOD)},
    }
    for name in (
        *(
            "take_results",
            "read_archives",
            "track_trees",
            "open_lab_jobs",
            "send_mail",
            "call_webhooks",
            "fold_reports",
        ),
        *(["ask_second_opinions"] if settings.PERFWORK_READER_URL else []),
    )
}
# Where days count, and not seconds.
app.conf.beat_schedule |= {
    name: {"task": name, "schedule": max(HOUR, settings.PERFWORK_PERIOD), "options": {"expires": HOUR}}
    for name in ("compose_reminders", "suggest_closings", "mail_faults")
}
