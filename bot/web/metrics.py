"""`/metrics` in Prometheus' text format: how the installation stands, and request times.

All is read from the database when it is asked for, so that nothing counts wrong after a restart. Answers to a bearer
token (PERFWORK_METRICS_KEY) only: names of archives and numbers of mails are for operators.
"""

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from celery import current_app
from django.conf import settings
from django.core.cache import cache
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from kombu.exceptions import OperationalError
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from tracker.models import BisectResult, Decision, Event, OutgoingMail, OutgoingState, Suggestion, TaskRun
from tracker.services.faults import STARTED, FaultKind, Snapshot, list_faults, take_snapshot

log = logging.getLogger(__name__)

KEPT = 10.0  # seconds for which the lengths of queues are kept
_CACHED = "perfwork-queue-lengths"
_WAITING = [state for state in OutgoingState if state not in (OutgoingState.SENT, OutgoingState.CANCELLED)]


@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Return all metrics to whoever has the key; there is no such page without one."""
    key = settings.PERFWORK_METRICS_KEY
    if not key:
        raise Http404("metrics are off: set PERFWORK_METRICS_KEY")
    if not constant_time_compare(request.headers.get("Authorization", ""), f"Bearer {key}"):
        return HttpResponse("a bearer token is required: PERFWORK_METRICS_KEY\n", status=401, content_type="text/plain")
    now = timezone.now()
    registry = CollectorRegistry()
    registry.register(_Gauges([*from_snapshot(take_snapshot(now)), *_from_database(now)]))
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):  # several web processes, each with its own times (bot/web/server.py)
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    else:
        registry.register(REGISTRY)  # a registry collects, too
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


class _Gauges(Collector):
    def __init__(self, gauges: Iterable[Metric]) -> None:
        self._gauges = list(gauges)

    def collect(self) -> Iterator[Metric]:
        yield from self._gauges


def from_snapshot(at: Snapshot) -> Iterator[Metric]:
    """Yield how the installation stands. Ages are in seconds, 0 if nothing waits."""
    for name, meaning, value in (
        ("perfwork_oldest_due_mail_seconds", "Age of the oldest approved mail.", _age(at.now, at.oldest_due)),
        ("perfwork_mails_in_doubt", "Mails in doubt.", at.in_doubt),
        ("perfwork_quarantined_mails", "Mails in quarantine, at most 1000.", at.quarantined),
        ("perfwork_rejected_files", "Rejected files in the drop directory.", at.rejected),
        ("perfwork_disk_free_bytes", "Free space on the disk of var/.", at.disks[0].free if at.disks else 0),
        ("perfwork_scheduler_behind_seconds", "Since when no scheduler runs.", _age(at.now, at.scheduler_until)),
    ):
        yield GaugeMetricFamily(name, meaning, value=value)
    for name, rows in (("archive", at.archives), ("tree", at.trees)):
        lag = {row.name: _age(at.now, row.at) for row in rows if row.at}
        yield _labelled(f"perfwork_{name}_lag_seconds", f"Time since each {name} was last read.", name, lag)
        failing = {row.name: float(bool(row.error)) for row in rows}
        yield _labelled(f"perfwork_{name}_failing", f"1 if the {name} can't be read.", name, failing)
    kinds = dict.fromkeys((str(kind) for kind in FaultKind), 0.0)
    for fault in list_faults(at):
        kinds[fault.kind] += 1
    yield _labelled("perfwork_faults", "Problems as on the front page of operators.", "kind", kinds)


def _from_database(now: datetime) -> Iterator[Metric]:
    day = now - timedelta(days=1)
    runs = list(TaskRun.objects.exclude(task=STARTED))
    since = {run.task: _age(now, run.at) for run in runs}
    yield _labelled("perfwork_task_last_run_seconds", "Time since each task last ended.", "task", since)
    took = {run.task: run.seconds for run in runs}
    yield _labelled("perfwork_task_seconds", "Duration of each task's last run.", "task", took)
    failed = {run.task: float(bool(run.error)) for run in runs}
    yield _labelled("perfwork_task_failed", "1 if a task's last run failed.", "task", failed)
    waiting = dict.fromkeys((state.value for state in _WAITING), 0.0)
    rows = OutgoingMail.objects.filter(state__in=_WAITING).values_list("state").annotate(Count("pk")).order_by()
    yield _labelled("perfwork_outgoing_mails", "Mails that are not sent, by state.", "state", {**waiting, **dict(rows)})
    asked = Suggestion.objects.filter(decision=Decision.OPEN).values_list("rule").annotate(Count("pk")).order_by()
    yield _labelled("perfwork_open_suggestions", "Suggestions to decide, by rule.", "rule", dict(asked))
    read = Event.objects.filter(recorded_at__gte=day).values_list("kind").annotate(Count("pk")).order_by()
    yield _labelled("perfwork_events_last_day", "Events recorded in 24 hours, by kind.", "kind", dict(read))
    results = BisectResult.objects.filter(received_at__gte=day).values_list("outcome").annotate(Count("pk")).order_by()
    yield _labelled("perfwork_results_last_day", "Bisect results received in 24 hours.", "outcome", dict(results))
    lengths = cache.get(_CACHED)
    if lengths is None:
        lengths = queue_lengths()
        cache.set(_CACHED, lengths, KEPT)
    yield _labelled("perfwork_queue_length", "Tasks that wait for a worker.", "queue", lengths)


def queue_lengths() -> dict[str, float]:
    """Return how many tasks wait in each queue; none if the broker can't be reached."""
    lengths = {}
    try:
        with current_app.connection_for_read() as connection:
            connection.ensure_connection(max_retries=1, timeout=2)
            for queue in current_app.conf.task_queues:
                channel: Any = connection.channel()
                try:
                    lengths[queue.name] = float(channel.queue_declare(queue.name, passive=True).message_count)
                except connection.channel_errors:  # no worker has declared it yet: the broker closes the channel then
                    lengths[queue.name] = 0.0
                finally:
                    channel.close()
    except (OperationalError, OSError) as error:
        log.warning("the broker can't be reached: %s", " ".join(str(error).split()))
    return lengths


def _age(now: datetime, then: datetime | None) -> float:
    return max(0.0, (now - then).total_seconds()) if then else 0.0


def _labelled(name: str, meaning: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, meaning, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family
