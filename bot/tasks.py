"""Celery tasks: each finds its work in the database and calls one function.

A task may be lost, repeated or run concurrently: what is to be done stands in the database, so the next beat finds
what a lost task left (`bot/celery.py` has the schedule). A task that must not run twice at once takes a lease; if
another worker has it, it is Busy, which is logged and is not an error.

Archives, trees and webhooks have a task each, so that a server that hangs keeps no other waiting. Archives are passed
by number, because a URL may hold a password that must not reach the broker. Such tasks expire after one period: by
then the next beat has enqueued them again. Errors are stored or logged, and the next run retries.

Nothing on the way may block mail: curves that can't be extended, or a digest that can't be composed, are logged. Mail
is sent in runs of seconds, so that a worker can stop soon when it is asked to.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from celery import shared_task
from django.conf import settings
from django.db import DatabaseError, OperationalError
from django.utils import timezone

import bot.celery  # noqa: F401  # the app that these tasks belong to
from bot import operations, webhooks
from bot.archives import batch
from bot.archives.public_inbox import CLONING, clone_following
from bot.archives.reader import MirrorPatience, forget_others, read_mirror
from bot.config import (
    bot_identity,
    bulletin_config,
    compose_config,
    configured_transport,
    configured_trees,
    recovery_policy,
    second_reader,
    send_config,
    tree_paths,
)
from bot.git.repository import Busy, Unreadable
from bot.lab import open_jobs
from bot.leases import service_lease
from bot.mail.settings import BotSettings
from bot.notifications import reminder, suggestions
from bot.notifications.answers import approve_answers
from bot.notifications.digest import compose_week
from bot.notifications.faults import mail_operators
from bot.notifications.follow_ups import compose_follow_ups
from bot.notifications.report import compose_due
from bot.notifications.sign_in import mail_links
from bot.notifications.subscription import compose_subscriptions
from bot.outbox import reconcile
from bot.outbox.sender import ENDS_A_ROUND, has_due, is_busy, send_due
from bot.outbox.transports import Signing, Transport
from bot.results.intake import take_dropped
from bot.results.storage import extend_curves
from bot.upstream.tracking import Patience, follow, store_trees
from tracker.services import event_log, installation
from tracker.services.database import database_now

log = logging.getLogger(__name__)

CALLING = timedelta(seconds=20)  # per run of one webhook
SENDING = 10.0  # seconds per run, so that a worker can stop soon when asked to


def compose_mail() -> None:
    """Compose report mails, further mails and, if set, the weekly digest. A kind that fails blocks no other; its error
    is raised in the end.
    """
    approve_first, now = settings.PERFWORK_APPROVE_FIRST, timezone.now()
    identity, config = bot_identity(), compose_config()
    composers: dict[str, Callable[[], object]] = {
        "report mails": lambda: compose_due(identity, now, approve_first=approve_first, config=config),
        "further mails": lambda: compose_follow_ups(identity, now, approve_first=approve_first, config=config),
        "mails to subscribers": lambda: compose_subscriptions(identity, now, config, approve_first=approve_first),
    }
    if settings.PERFWORK_DIGEST:
        composers["the weekly digest"] = lambda: compose_week(bulletin_config(), now, approve_first=approve_first)
    errors = []
    for what, compose in composers.items():
        try:
            compose()
        except Exception as error:
            log.exception("%s could not be composed", what)
            errors.append(error)
    if errors:
        raise errors[0]


@shared_task(name="compose_reminders")
def compose_reminders() -> int:
    """Compose reminders that are due, and cancel those that are not any more. Return how many were composed."""
    return reminder.compose_reminders(bot_identity(), timezone.now(), compose_config())


@shared_task(name="suggest_closings")
def suggest_closings() -> int:
    """Suggest to close what may be closed by now. Return how many suggestions are new."""
    return event_log.suggest_closings(timezone.now())


@shared_task(name="take_results")
def take_results() -> int:
    """Read results from the drop directory, and compose mail for new ones. Return how many were read."""
    taken = take_dropped(settings.PERFWORK_DROP, tree_paths(), timezone.now())
    try:
        extend_curves(timezone.now())  # before mail is composed, which says what is known of the place
    except Exception:  # it must not block mail
        log.exception("the curves could not be extended")
    try:
        compose_mail()
    finally:
        if not settings.PERFWORK_APPROVE_FIRST:
            approve_answers(timezone.now())
        if has_due(timezone.now()):
            _enqueue(send_mail)  # at once, not at the next beat; a worker that seems to be sending may be dead
    return taken


@shared_task(name="fold_reports")
def fold_reports() -> int:
    """Fold all reports again after an upgrade, unless another worker does. Return how many were folded."""
    if event_log.progress() is None:
        return 0
    return _alone("folding", lambda: event_log.fold_all(lambda at: log.info("%s", at)))


@shared_task(name="open_lab_jobs")
def open_lab_jobs() -> int:
    """Open a job for each request that waits for the lab, unless another worker does. Return how many were opened."""
    return _alone("lab jobs", lambda: open_jobs(bot_identity(), tree_paths(), timezone.now()))


@shared_task(name="read_archives")
def read_archives() -> None:
    """Enqueue a task for every archive, so that a hanging server blocks no other archive."""
    forget_others(settings.PERFWORK_ARCHIVES)
    file_accepted()  # a nudge may have been lost
    for index, _ in enumerate(settings.PERFWORK_ARCHIVES):
        _enqueue(read_archive, index)  # by number: a URL may hold a password, to be kept off the broker


@shared_task(name="file_accepted")
def file_accepted() -> int:
    """File the mails of people's reports that somebody has accepted. Return how many were filed."""
    return _alone("accepted reports", lambda: batch.file_accepted(bot_identity(), timezone.now()).reports)


@shared_task(name="read_archive")
def read_archive(index: int) -> None:
    """Fetch and read one archive, unless another worker does. Errors are stored, and affect no other archive."""
    lease, interval = timedelta(seconds=settings.PERFWORK_LEASE), timedelta(seconds=settings.PERFWORK_FETCH_EVERY)
    fetching = settings.PERFWORK_ARCHIVE_PATIENCE if settings.PERFWORK_FETCH else None
    patience = MirrorPatience(fetching, lease, interval, settings.PERFWORK_FETCH_PATIENCE)
    with _logged(IndexError, OperationalError):
        outcome = read_mirror(settings.PERFWORK_ARCHIVES[index], bot_identity(), timezone.now(), patience)
        if outcome.error:
            log.error("%s", outcome.error)
        if outcome.has_next:
            _enqueue(clone_epochs, index)


@shared_task(name="clone_epochs", soft_time_limit=CLONING, time_limit=CLONING + 600)
def clone_epochs(index: int) -> None:
    """Clone the new epochs of an archive, which may take hours; the archive is read meanwhile."""
    with _logged(Unreadable, OSError, IndexError):
        clone_following(Path(settings.PERFWORK_ARCHIVES[index]))


@shared_task(name="track_trees")
def track_trees() -> None:
    """Enqueue a task for every tree, so that a hanging server blocks no other tree."""
    for name in settings.PERFWORK_TREES:
        _enqueue(track_tree, name)


@shared_task(name="track_tree")
def track_tree(name: str) -> None:
    """Fetch and walk one tree, unless another worker does. Errors are logged, and affect no other tree."""
    lease, interval = timedelta(seconds=settings.PERFWORK_LEASE), timedelta(seconds=settings.PERFWORK_FETCH_EVERY)
    patience = Patience(settings.PERFWORK_FETCH_PATIENCE, lease, interval)
    with _logged(Unreadable, OSError, OperationalError):
        for tree in store_trees(configured_trees([name])):
            _, failure = follow(tree, bot_identity(), timezone.now(), patience, tree_paths())
            if failure:
                log.error("%s", failure)


@shared_task(name="ask_second_opinions")
def ask_second_opinions() -> int:
    """Ask the lab's language model about replies that nothing sure is known of. Return how many were asked."""
    reader = second_reader()
    if reader is None:
        return 0
    from bot.second_opinion import ask_about_replies

    most = settings.PERFWORK_READER_A_DAY
    return _alone("second opinions", lambda: ask_about_replies(reader, bot_identity(), timezone.now(), most))


@shared_task(name="send_links")
def send_links() -> int:
    """Mail the sign-in links that somebody waits for at a page. Return how many; `send_mail` sends what is left."""
    return _send_unstored(mail_links)


@shared_task(name="mail_faults")
def mail_faults() -> int:
    """Mail operators what does not work, at most once a day. Return how many mails a server accepted."""
    return _send_unstored(mail_operators) if settings.PERFWORK_SENDING else 0


@shared_task(name="mail_suggestions")
def mail_suggestions() -> int:
    """Mail triagers what is newly suggested. Return how many mails a server accepted."""
    if not (settings.PERFWORK_SENDING and settings.PERFWORK_SUGGESTIONS):
        return 0
    return _alone("suggestions", lambda: _send_unstored(suggestions.mail_suggestions))


@shared_task(name="prune")
def prune() -> int:
    """Remove what is kept for a time only, and measure what is stored then. Return how much was removed."""
    now = timezone.now()
    removed = 0
    if settings.PERFWORK_PRUNE:
        removed = sum(pruned.number for pruned in operations.prune(settings.PERFWORK_DROP, now))
    named = {f"archive {Path(path).name}": Path(path) for path in settings.PERFWORK_ARCHIVES if "://" not in path}
    named |= {f"tree {path.stem}": path for path in tree_paths()}
    installation.record_sizes(installation.measure_sizes({"drop directory": settings.PERFWORK_DROP, **named}), now)
    return removed


@shared_task(name="send_mail", soft_time_limit=900, time_limit=960)
def send_mail() -> int:
    """Send approved mail that is due for SENDING seconds; enqueue itself again if more is due. Return how many."""
    now = database_now()
    reconcile.sweep(now)
    reconcile.resolve(recovery_policy(), now)
    if not settings.PERFWORK_SENDING:
        log.info("PERFWORK_SENDING is off: mail stays in the outbox")
        return 0
    try:
        transport = configured_transport()
    except ValueError as invalid:
        log.info("%s", invalid)
        return 0
    config = send_config(run=SENDING)
    mail_links(transport, bot_identity(), now, config.signing)
    try:
        statuses = send_due(transport, config)
    except DatabaseError as error:  # a full disk, or a lost server: unrecorded mail becomes in doubt later
        log.error("sending stopped: %s", error)
        return 0
    if statuses and not ENDS_A_ROUND & statuses.keys() and has_due(timezone.now()) and not is_busy():
        _enqueue(send_mail)
    return statuses.total()


@shared_task(name="call_webhooks")
def call_webhooks() -> int:
    """Queue new events for webhooks, and enqueue a task for each that has some. Return how many."""
    ready: list[int] = []
    with _logged(), service_lease("webhooks", timedelta(minutes=30)):
        ready = webhooks.queue_events(settings.PERFWORK_BASE_URL, timezone.now())
    for pk in ready:
        _enqueue(call_webhook, pk)
    return len(ready)


@shared_task(name="call_webhook")
def call_webhook(pk: int) -> int:
    """Send to one webhook, unless another worker does: one that hangs keeps no other waiting. Return how many left."""
    private = settings.PERFWORK_WEBHOOKS_PRIVATE
    return _alone(
        f"webhook {pk}",
        lambda: webhooks.deliver(pk, timezone.now, private=private, until=timezone.now() + CALLING),
        minutes=5,
    )


def _send_unstored(mail: Callable[[Transport, BotSettings, datetime, Signing | None], int]) -> int:
    """Return what a function sends that composes mail and stores none; 0 if no transport is set."""
    try:
        transport = configured_transport()
    except ValueError as invalid:
        log.info("%s", invalid)
        return 0
    with closing(transport):
        return mail(transport, bot_identity(), timezone.now(), send_config().signing)


def _alone(service: str, work: Callable[[], int], minutes: int = 30) -> int:
    """Return what the work does, under the lease of a service; 0 if another worker has it."""
    with _logged(), service_lease(service, timedelta(minutes=minutes)):
        return work()
    return 0


@contextmanager
def _logged(*failures: type[Exception]) -> Iterator[None]:
    """Log that another worker has the work, or one of these failures, after which the next task tries again."""
    try:
        yield
    except Busy as busy:
        log.info("%s", busy)
    except failures as error:
        log.error("%s", error)


def _enqueue(task: Any, *arguments: Any) -> None:
    """Enqueue a task that the next beat would enqueue again: after that it is of no use."""
    task.apply_async(arguments, expires=max(10.0, settings.PERFWORK_PERIOD))
