"""The checks before a mail is sent: a sound mail passes, and each seeded fault is found and named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.compose.conventions import Conventions
from bot.compose.lint import HEADINGS, faults
from bot.compose.mail import ComposedMail, Recipient, Recipients
from bot.compose.report_data import ReportData
from bot.compose.report_mail import compose
from bot.mail.addresses import Address
from tests.conftest import NOW, ROOT
from tests.support.outbox import BOT, FINDING, LIST, REPORT, SLOWER
from tracker.domain.events import Grade, Verdict

CONVENTIONS = Conventions()
Fault = Callable[[ComposedMail], ComposedMail]


def found(mail: ComposedMail, report: ReportData | None = REPORT) -> tuple[str, ...]:
    return faults(mail, BOT, CONVENTIONS, NOW, report)


def body(old: str, new: str) -> Fault:
    """The body with one thing changed, which stands there."""

    def changed(mail: ComposedMail) -> ComposedMail:
        assert old in mail.body
        return replace(mail, body=mail.body.replace(old, new))

    return changed


def subject(old: str, new: str) -> Fault:
    return lambda mail: replace(mail, subject=mail.subject.replace(old, new))


def to(*emails: str) -> Fault:
    people = tuple(Recipient(Address("", email), "") for email in emails)
    return lambda mail: replace(mail, recipients=Recipients(people, ()))


def bounces(why: str) -> Fault:
    """Only the list is left, since the author's address is left out."""
    lists = (Recipient(Address("", LIST), "our own list", is_list=True),)
    return lambda mail: replace(mail, recipients=Recipients(lists, (), (Recipient(REPORT.author, why),)))


def test_lists_get_what_the_author_does_not_want() -> None:
    assert found(bounces("opted out")(compose(REPORT, BOT, NOW))) == ()


def test_a_sound_mail_has_no_fault() -> None:
    better = replace(FINDING, change_pct=12.44, new_mean=207114.48, verdict=Grade.IMPROVEMENT)
    for report in (
        REPORT,
        replace(REPORT, verdict=Verdict.IMPROVEMENT, findings=(better,)),
        replace(REPORT, findings=(FINDING, replace(FINDING, suite="fsmark", metric="fsmark.files_per_sec"))),
        replace(REPORT, findings=(replace(FINDING, old_mean=0.0, change_pct=None, direction="lower"),)),
        replace(REPORT, title="mm: {{ a }} of None", parent_title="TODO"),  # others may write what they like
        replace(REPORT, findings=(replace(FINDING, noise_pct=9.0, overlap=True, params={}),), test_text="it scans"),
    ):
        assert found(compose(report, BOT, NOW), report) == ()


# The fault, and what is said of it.
SEEDED: list[tuple[str, Fault, str]] = [
    ("another sha in the subject", subject("3b1f0c9d2e", "0123456789"), "the subject names 0123456789, the culprit is"),
    ("another change in the subject", subject("-12.4%", "-21.4%"), "the subject says -21.4%, measured is -12.4%"),
    ("the wrong word in the subject", subject("regression", "improvement"), "the subject says improvement, it is"),
    ("another change in the body", body("a -12.4% reg", "a 14.2% reg"), "the body says 14.2%, measured is -12.4%"),
    ("another commit in the body", body("commit: 3b1f", "commit: 3b1e"), "the body names 3b1e0c9d2e, the culprit is"),
    ("another number in the table", body("    161290 ", "    151290 "), "the table says 184200 -> 151290"),
    ("another change in the table", body("    -12.4%    161290", "    -11.4%    161290"), "the table says -11.4%"),
    ("a row is lost", body("      3.10 ±  3%      +22.0%     3.782 ", "3.10 -> 3.782 "), "the tables have 1 of 2 rows"),
    ("a table is cut", lambda mail: replace(mail, body=mail.body.partition("\n    184200")[0]), "is empty"),
    ("a placeholder", body("Hello,", "Hello {{ name }},"), "a placeholder was not filled in: {{"),
    ("a value that is none", body("gcc-14", "None"), "a placeholder was not filled in: None"),
    ("a line too long", body("Hello,", "Hello, " + "and so on " * 9), "a line is longer than 78 columns"),
    ("an empty section", body("\tnr_task: 50%\n\ttest: anon-cold\n", ""), "no content below 'parameters:'"),
    ("a control character", body("Hello,", "Hello\x07,"), "it contains a control character, U+0007"),
    ("text that runs backwards", body("Hello,", "Hello\u202e,"), "it contains a control character, U+202E"),
    ("nobody to tell", lambda mail: replace(mail, recipients=Recipients((), ())), "no recipients"),
    (
        "lists only, since the author bounces",
        bounces("bounces: 550 no such user"),
        "nobody would get it who can answer",
    ),
    ("an address that is none", to("dana@dev"), "must never get a report"),
    ("stable@", to("stable@vger.kernel.org"), "stable@vger.kernel.org: must never get a report"),
    ("ourselves", to("perfbot+7d3e91c0a45b28f6@bot.example.org"), "is our own address: the bot would mail itself"),
    ("somebody twice", to(LIST, LIST), "a recipient is listed twice"),
    ("too many", to(*(f"p{n}@dev.example" for n in range(99))), "99 recipients: too many"),
    ("another's Message-ID", lambda mail: replace(mail, message_id="a@b.example"), "Message-ID is not one of ours"),
    ("a link to another mail", body("r/202611211200", "r/202611211201"), "Closes: does not link to this mail"),
    ("another's tag", body("perfbot+7d3e", "perfbot+0d3e"), "Reported-by: is not the report's address"),
    (
        "it answers itself",
        lambda mail: replace(mail, in_reply_to=mail.message_id, references=(mail.message_id,)),
        "it replies to itself",
    ),
    (
        "References that do not end with it",
        lambda mail: replace(mail, in_reply_to="x@y.example", references=("z@y.example",)),
        "References do not end with the In-Reply-To",
    ),
    ("another sender", lambda mail: replace(mail, sender=Address("", "x@y.example")), "From is not perfbot@"),
    (
        "answers without a tag",
        lambda mail: replace(mail, reply_to=Address("", BOT.address)),
        "Reply-To lacks the report's tag",
    ),
    ("tomorrow", lambda mail: replace(mail, date=NOW + timedelta(days=1)), "the date is in the future"),
    ("too large", body("Hello,", "Hello,\n" + "very much indeed\n" * 7000), "it is larger than 100 kB"),
    ("no link to the page", body("https://perf.example.org/report", "https://x.example"), "no link to the report"),
    ("no end", body("\n-- \n", "\n"), "the signature delimiter is missing"),
]


@pytest.mark.parametrize(("fault", "message"), [each[1:] for each in SEEDED], ids=[each[0] for each in SEEDED])
def test_a_seeded_fault_is_found(fault: Fault, message: str) -> None:
    sound = compose(REPORT, BOT, NOW)
    assert found(sound) == ()
    assert message in "; ".join(found(fault(sound)))


@pytest.mark.parametrize(
    ("report", "message"),
    [
        (
            replace(REPORT, authored_at=datetime(2024, 1, 1, tzinfo=UTC)),
            "the culprit is from 2024-01-01, older than 365",
        ),
        (replace(REPORT, author=Address("Dana", "")), "the culprit's author is not known"),
        (replace(REPORT, title=""), "the culprit has no title"),
        (replace(REPORT, sha="3b1f0c9d2e"), "'3b1f0c9d2e' is not a full sha"),
        (replace(REPORT, parent_sha=REPORT.sha), "the culprit is its own parent"),
        (replace(REPORT, verdict=Verdict.IMPROVEMENT), "the change of vm-scan.ops_per_sec is not an improvement"),
        (replace(REPORT, findings=(replace(SLOWER, direction="higher"),)), "is not a regression"),
        (replace(REPORT, verdict=Verdict.UNKNOWN), "the metric's direction is unknown"),
    ],
)
def test_a_report_that_should_not_be_told_is_found(report: ReportData, message: str) -> None:
    assert message in "; ".join(found(compose(report, BOT, NOW), report))


def test_a_heading_with_nothing_below_it() -> None:
    sound = compose(REPORT, BOT, NOW)
    empty = replace(sound, body=sound.body.replace("Details are", "kindly add these tags:\n\nDetails are"))
    assert found(empty) == ("no content below 'kindly add these tags:'",)


def test_long_names_hold_no_sound_mail() -> None:
    long_one = replace(
        FINDING, metric="perf-sched.wait_and_delay.max.ms." + "__x64_sys_sched_yield." * 3 + "do_syscall_64"
    )
    huge = replace(long_one, change_pct=1234567.0, new_mean=184200.0 * 12346, direction="lower")
    bot = replace(BOT, name="The kernel performance robot")
    for report in (replace(REPORT, findings=(long_one,)), replace(REPORT, findings=(FINDING, huge))):
        assert faults(compose(report, bot, NOW), bot, CONVENTIONS, NOW, report) == ()


def test_the_headings_are_those_of_the_templates() -> None:
    templates = "".join(path.read_text() for path in (ROOT / "templates" / "mail").glob("*.txt"))
    assert [each for each in HEADINGS if f"{each}\n" not in templates] == []


def test_a_mail_with_many_faults_names_some() -> None:
    sender, answers = Address("", "a@b.example"), Address("", "c@d.example")
    nobody = ComposedMail("x@y.example", sender, answers, Recipients((), ()), "-", NOW, "\x00", "")
    assert len(found(nobody)) == 10
    (fault,) = found(replace(nobody, sender=Address("", "")))  # in the words of this Python's email package
    assert fault.startswith("not a valid mail: ")


@given(subject=st.text(max_size=80), text=st.text(max_size=300), message_id=st.text(max_size=40))
def test_whatever_a_mail_holds_the_look_at_it_ends(subject: str, text: str, message_id: str) -> None:
    sound = compose(REPORT, BOT, NOW)
    odd = replace(sound, subject=subject, body=sound.body + text)
    assert isinstance(found(odd), tuple)
    assert found(replace(sound, references=(message_id,), in_reply_to="x@y.example"))
