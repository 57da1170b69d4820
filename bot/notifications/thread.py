"""What all further mails about a report share: its thread, its recipients, its state.

They are sent in the thread of the report's mail, to those who got it, but not to those who have opted out or can't be
reached; a person with several addresses gets one mail. `first` is whom a mail is for, in To: where possible. The
purpose identifies a mail's content and determines its Message-ID. `ReportContext` is the report as these mails need
it: its thread, its state, the events in force and its headline. Each kind of mail has a chapter beside this one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.template.loader import render_to_string

from bot.compose.conventions import DEFAULT, Conventions, message_id, patch_mail, reply_position
from bot.compose.mail import ComposedMail, Recipient, Recipients, choose, mail_of
from bot.compose.report_data import FindingData
from bot.compose.report_mail import commit_line, finished
from bot.mail.addresses import Address
from bot.mail.message import one_line, parse
from bot.mail.patches import bare_title
from bot.mail.settings import BotSettings
from bot.notifications.report import ancestors, headline_of, values_of
from tracker.domain.events import EventData, EventKind, Verdict
from tracker.domain.report_state import ReportState, effective_events, fold
from tracker.models import Commit, Message, OutgoingMail, Report

# --- A mail in the thread ---


@dataclass(frozen=True, slots=True)
class ThreadData:
    """A report whose mail was sent: its culprit, that mail, and how many people a mail goes to at most."""

    tag: str
    sha: str
    title: str
    verdict: str
    message_id: str
    references: tuple[str, ...]
    subject: str
    to: tuple[Address, ...]
    cc: tuple[Address, ...]
    lists: frozenset[str] = frozenset()  # which of these are lists
    most_people: int = DEFAULT.most_people


@dataclass(frozen=True, slots=True)
class ThreadMails:
    """Composes mails in the threads of reports, for one round of composing. `excluded`: who gets no mail, and why."""

    settings: BotSettings
    now: datetime
    excluded: Mapping[str, str]

    def compose(
        self,
        thread: ThreadData,
        purpose: str,
        template: str,
        context: Mapping[str, object],
        first: Recipient | None = None,
        trailer: str = "",
        also: Sequence[Recipient] = (),
    ) -> ComposedMail:
        """Return a mail in the report's thread.

        `purpose` identifies its content and determines its Message-ID; `first`: whom to put in To, where possible;
        `trailer`: a trailer line for tools to collect; `also`: who gets it besides the report's recipients.
        """
        settings, commit = self.settings, commit_line(thread.sha, thread.title)
        common = {
            "bot": one_line(settings.name, 60),
            "sha": thread.sha,
            "commit": commit,
            "title": one_line(thread.title, 200),
            "verdict": thread.verdict,
            "prefix": settings.prefix,
            "page": settings.page(thread.sha[:12]),
            "help": settings.help,
        }
        # If `first` is one too many, the last person of Cc is left out
        got_it = (
            Recipient(address, "got the report", is_list=address.email in thread.lists)
            for address in (*thread.to, *thread.cc)
        )
        candidates = (*([first] if first else ()), *also, *got_it)
        kept, left_out = choose(candidates, settings, self.excluded, thread.most_people)
        addressed = [first.email] if first and first in kept else [address.email for address in thread.to]
        to = tuple(recipient for recipient in kept if recipient.email in addressed) or kept[:1]
        return mail_of(
            message_id(self.now, thread.tag, settings, purpose),
            thread.tag,
            Recipients(to, tuple(recipient for recipient in kept if recipient not in to), left_out),
            f"Re: {thread.subject}",
            finished(render_to_string(f"mail/{template}.txt", {**common, **context}), (commit, trailer)),
            settings,
            self.now,
            reply_position(thread.message_id, thread.references),
        )


# --- The report behind it ---


@dataclass(frozen=True, slots=True)
class ReportContext:
    """`sent`: the report's mail; `events`: those in force, not reversed."""

    report: Report
    thread: ThreadData
    sent: OutgoingMail
    report_state: ReportState
    events: tuple[EventData, ...]

    @property
    def headline(self) -> FindingData:
        """The headline finding; LookupError if it is held by now."""
        return values_of([headline_of(self.report)])[0]

    def text_of(self, event: EventData) -> str:
        """Return the text behind an event: the argument of a command, or the sentence that it relied on."""
        quote = self.report.events.filter(key=event.key).values_list("quote", flat=True).first()
        return event.remark or quote or ""

    def patch_thread(self, event: EventData, title: str) -> ThreadData:
        """Return the thread of the measured patch, so that tools collect the tag there; else the report's thread.

        The patch is found by the commit's link, or as the only posting with its title; with several versions it is
        ambiguous.
        """
        commit = Commit.objects.filter(sha=event.commit).first()
        message_id = (commit.patch_message_id or patch_mail(commit.trailers)) if commit else ""
        if not message_id:
            posted = [
                other.message_id
                for other in self.events
                if other.kind is EventKind.FIX_PROPOSED and other.message_id and bare_title(other.title) == title
            ]
            message_id = posted[0] if len(set(posted)) == 1 else ""
        mail = Message.objects.filter(message_id=message_id).first() if message_id else None
        if mail is None:
            return self.thread
        subject = mail.subject.removeprefix("Re: ")
        return replace(self.thread, message_id=message_id, references=ancestors(message_id), subject=subject)


def report_context(sent: OutgoingMail, conventions: Conventions) -> ReportContext:
    """Return the context of a report, from its sent mail."""
    report = sent.about
    mail = parse(bytes(sent.raw))
    events = [event.value() for event in report.events.all()]
    return ReportContext(
        report=report,
        thread=ThreadData(
            tag=report.tag,
            sha=report.culprit.sha,
            title=report.culprit.title,
            verdict=report.verdict,
            message_id=sent.message_id,
            references=mail.references,
            subject=sent.subject,
            to=mail.to,
            cc=mail.cc,
            lists=frozenset(sent.lists),
            most_people=conventions.most_people,
        ),
        sent=sent,
        report_state=fold(Verdict(report.verdict), events),
        events=tuple(effective_events(events)),
    )
