"""Pages for operators: the policy (`/operating/policy/`), the settings (`/operating/settings/`), which are only shown,
the text of a mail that waits (`/outbox/<id>/edit/`), and rejected files.

The policy says what is mailed, approved and held. It is TOML, in revisions (`TextRevision`). A form shows what it says,
and writes it; both are checked by the one reader (bot/compose/policy.py), and a preview says which mails of the last
days would have been decided otherwise. A file that PERFWORK_POLICY names wins, and is shown.
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from bot.checks import check_settings
from bot.compose.lint import MAX_BYTES, edit_faults
from bot.compose.mail import edited
from bot.compose.policy import MOST_RULES, Action, Policy, PolicyRule, policy_of, read_policy, to_toml
from bot.config import POLICY, bot_identity, compose_config, policy_file
from bot.notifications.report import MOST_REDECIDED, Redecided, decided_otherwise
from bot.results import recognise
from tracker.domain.text import counted
from tracker.models import OutgoingMail, TextRevision
from tracker.pages import prose
from tracker.pages.http import cleaned, permission_required, username
from tracker.services import mail_transitions
from tracker.services.accounts import SEND

SHOWN = 30  # revisions, and mails of the preview
PREVIEWED = timedelta(days=7)

# --- The form ---

# Name, label and unit of each number.
LIMITS = (
    ("a_day", "Mails a day", ""),
    ("per_author_a_day", "to one author", "a day"),
    ("per_list_a_day", "to one list", "a day"),
    ("quiet_days_after_fix", "No report after a fix was posted, for", "days"),
)
RATES = (("all", "Mails a minute"), ("domain", "to one domain"), ("address", "to one address"))
REMINDERS = (
    ("response_days", "No response for", "working days"),
    ("fix_days", "no candidate fix for", "working days"),
    ("landing_days", "a confirmed fix that has not landed for", "working days"),
    ("serious_days", "each of them, if the report is serious:", "working days"),
    ("serious_pct", "Serious from a change of", "%"),
    ("at_least_pct", "no reminder of changes below", "%"),
)
PATTERNS = ("suites", "trees", "subsystems", "authors")
SIZES = ("at_least_pct", "below_pct")


def in_fields(policy: Policy) -> dict[str, str]:
    """Return what the form's fields say of a policy, by name; what is not given stays empty."""
    reminders, quiet = policy.reminders, policy.quiet_hours
    values: dict[str, Any] = {
        "a_day": policy.a_day,
        "per_author_a_day": policy.per_author,
        "per_list_a_day": policy.per_list,
        "quiet_days_after_fix": policy.quiet_after_fix.days,
        "quiet_hours": str(quiet) if quiet else "",
        "never": "\n".join(policy.never),
        "all": policy.rates.every,
        "domain": policy.rates.domain,
        "address": policy.rates.address,
        "own_rates": "\n".join(f"{name} {rate}" for name, rate in policy.rates.own.items()),
        "reminders": reminders.action,
        **{f"remind_{name}": getattr(reminders.deadlines, name) for name, _, unit in REMINDERS if unit != "%"},
        **{f"remind_{name}": f"{getattr(reminders, name):.0f}" for name, _, unit in REMINDERS if unit == "%"},
    }
    for number, rule in enumerate(policy.rules, 1):
        values |= {f"rule{number}_{name}": value for name, value in _of_rule(rule).items()}
    return {name: str(value) for name, value in values.items()}


def _of_rule(rule: PolicyRule) -> dict[str, str]:
    said = {name: ", ".join(getattr(rule, name)) for name in PATTERNS}
    return {
        "action": rule.action,
        "direction": rule.direction,
        "at_least_pct": _digits(rule.at_least_pct) if rule.at_least_pct else "",
        "below_pct": _digits(rule.below_pct) if rule.below_pct != float("inf") else "",
        "opted_in": "on" if rule.opted_in else "",
        **said,
    }


def _digits(number: float) -> str:
    return str(number).removesuffix(".0")


def from_fields(posted: Mapping[str, str]) -> Policy:
    """Return the policy that a filled-in form says. Raises ValueError, in the words of the reader of TOML.

    A rule without an action is left out.
    """
    table: dict[str, Any] = {name: _number(posted.get(name, "")) for name, _, _ in LIMITS if posted.get(name)}
    if hours := posted.get("quiet_hours", "").strip():
        table["quiet_hours"] = hours
    if never := posted.get("never", "").replace(",", " ").split():
        table["never"] = never
    table["rate"] = {name: _number(posted[name]) for name, _ in RATES if posted.get(name)}
    for line in posted.get("own_rates", "").splitlines():
        name, _, rate = line.strip().rpartition(" ")
        if line.strip():
            table["rate"][name.strip()] = _number(rate)
    table["reminders"] = {"action": posted.get("reminders", "")}
    days = {name: posted.get(f"remind_{name}", "") for name, _, _ in REMINDERS}
    table["reminders"] |= {name: _number(said) for name, said in days.items() if said}
    table["rule"] = list(_rules(posted))
    return policy_of(table)


def _rules(posted: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for number in range(1, MOST_RULES + 1):
        said = {own.name: posted.get(f"rule{number}_{own.name}", "").strip() for own in fields(PolicyRule)}
        if not said["action"]:
            continue
        rule: dict[str, Any] = {"action": said["action"]}
        rule |= {"direction": said["direction"]} if said["direction"] else {}
        rule |= {name: _number(said[name]) for name in SIZES if said[name]}
        rule |= {name: _names(said[name]) for name in PATTERNS if said[name]}
        rule |= {"opted_in": True} if said["opted_in"] else {}
        yield rule


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _number(text: str) -> Any:
    """Return a number, or the text, which the reader then names."""
    for kind in (int, float):
        try:
            if len(text) < 20:
                return kind(text)
        except ValueError:
            continue
    return text


# --- The page ---


@permission_required(SEND, "only operators see and change the mail policy")
def policy_page(request: HttpRequest) -> HttpResponse:
    """Show the policy; check, preview and save a changed one, from the form or as TOML."""
    revisions = prose.versions(POLICY, POLICY, SHOWN)
    version = str(revisions[0].pk if revisions else 0)
    context: dict[str, Any] = {"version": version, "error": "", "preview": None, "file": settings.PERFWORK_POLICY}
    text, status = "", 200
    try:
        text = _in_force(revisions)
    except (ValueError, ImproperlyConfigured) as mistake:
        context["error"] = str(mistake)
    if request.method == "POST" and not settings.PERFWORK_POLICY:
        try:
            text = _posted(request, revisions)
            wanted = read_policy(text)
            if request.POST.get("version") != version:
                raise ValueError("somebody else has changed the policy: compare it with yours, and save again")
            if request.POST.get("do") != "preview":
                return _saved(request, text)
            context["preview"] = _preview(wanted)
        except ValueError as mistake:
            context["error"], status = str(mistake), 400
    try:
        policy = read_policy(text)
    except ValueError as mistake:  # in the text that was typed, or in that in force
        context["error"], policy = str(mistake), Policy()
    shown = in_fields(policy)
    if status == 400 and request.POST.get("as") == "form":
        shown = {name: cleaned(request.POST, name, prose.LONGEST) for name in request.POST}  # as it was typed
    context |= _fields(shown, min(len(policy.rules) + 2, MOST_RULES)) | {
        "text": text,
        "typed": status == 400,
        "revisions": revisions,
        "approve_first": settings.PERFWORK_APPROVE_FIRST,
    }
    return render(request, "policy.html", context, status=status)


def _in_force(revisions: Sequence[TextRevision]) -> str:
    """Return the text of the policy in force; one that says nothing has the defaults. Raises as `policy_file`."""
    if settings.PERFWORK_POLICY:
        return policy_file()
    return revisions[0].text + "\n" if revisions else to_toml(Policy())


def _posted(request: HttpRequest, revisions: Sequence[TextRevision]) -> str:
    """Return the text that the form, the TOML or a former revision says."""
    match request.POST.get("as"):
        case "toml":
            return _typed(request, "text")
        case "form":
            return to_toml(from_fields({name: _typed(request, name) for name in request.POST}))
        case _:
            wanted = cleaned(request.POST, "revision", 20)
            texts = {str(revision.pk): revision.text for revision in revisions}
            if wanted not in texts:
                raise ValueError("there is no such revision")
            return texts[wanted]


def _typed(request: HttpRequest, name: str) -> str:
    """Return a field as it was typed. Raises ValueError if it is too long: a policy that is cut lets mail out."""
    text = request.POST.get(name, "").replace("\r\n", "\n").replace("\0", "")
    if len(text) > prose.LONGEST:
        raise ValueError(f"{name[:40]}: expected at most {prose.LONGEST:,} characters, found {len(text):,}")
    return text


def _saved(request: HttpRequest, text: str) -> HttpResponse:
    changed = prose.write(POLICY, POLICY, text, username(request), timezone.now())
    messages.info(
        request, "The policy is changed: it decides from the next mail on." if changed else "Nothing has changed."
    )
    return redirect("policy")


def _preview(wanted: Policy) -> dict[str, Any]:
    """Return how the mails of the last days would have been decided otherwise."""
    otherwise = Action.APPROVE if settings.PERFWORK_APPROVE_FIRST else Action.SEND
    seen, mails = decided_otherwise(wanted, bot_identity(), compose_config(), timezone.now() - PREVIEWED, otherwise)
    return {
        "seen": seen,
        "newest": seen == MOST_REDECIDED,
        "days": PREVIEWED.days,
        "mails": mails[:SHOWN],
        "more": len(mails) - SHOWN,
        "by": _counts(mails),
    }


def _counts(mails: Iterable[Redecided]) -> list[tuple[str, int]]:
    words = {Action.SEND: "sent without approval", Action.APPROVE: "left for approval", Action.HOLD: "held"}
    became = [mail.becomes for mail in mails]
    return [(words[action], became.count(action)) for action in Action if action in became]


def _fields(shown: Mapping[str, str], rules: int) -> dict[str, Any]:
    """Return the form's fields for the template, by part of the page; `rules`: how many of them."""
    of_rule = [field.name for field in fields(PolicyRule)]
    values = [{name: shown.get(f"rule{number}_{name}", "") for name in of_rule} for number in range(1, rules + 1)]
    return {
        "limits": [(name, label, shown.get(name, ""), unit) for name, label, unit in LIMITS],
        "rates": [(name, label, shown.get(name, "")) for name, label in RATES],
        "reminder_fields": [
            (f"remind_{name}", label, shown.get(f"remind_{name}", ""), unit) for name, label, unit in REMINDERS
        ],
        "values": {name: shown.get(name, "") for name in ("quiet_hours", "never", "own_rates", "reminders")},
        "actions": list(Action),
        "rules": [
            {"values": rule, "patterns": [(name, rule[name]) for name in PATTERNS], "number": number}
            for number, rule in enumerate(values, 1)
        ],
    }


# --- `/operating/settings/`: what each setting is on this machine, where that comes from, and what it means ---
# For operators; secrets are masked. Settings are changed where they are: in the environment or its file, not here.

REFERENCE = settings.BASE_DIR / "docs" / "reference.md"
_ROW = re.compile(r"^\| `([A-Z_]+)` \|(.*?)\| (.*) \|$", re.M)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_SECRETS = {"SECRET_KEY", "SECRET_KEY_FALLBACKS", "PERFWORK_READER_KEY", "PERFWORK_METRICS_KEY"}
_USER = re.compile(r"(?<=://).*@", re.S)  # with its password; to the last @: one in either may not be escaped
MASK = "…"


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """A setting: what it is set to (its default, if `source` is empty), by what, and what it means."""

    name: str
    value: str
    source: str
    meaning: str


@require_safe
@permission_required(SEND, "only operators see the settings")
def settings_page(request: HttpRequest) -> HttpResponse:
    """Show what was set, then the defaults, and what `check` says of them."""
    rows = shown_settings(REFERENCE.read_text(), os.environ, settings.FROM_ENVIRONMENT)
    groups = [
        ("set", "Set", [row for row in rows if row.source]),
        ("defaults", "At their defaults", [row for row in rows if not row.source]),
    ]
    context = {"groups": groups, "complaints": check_settings(), "file": os.environ.get("PERFWORK_ENV", "")}
    return render(request, "settings.html", context)


def shown_settings(
    reference: str, environment: Mapping[str, str], from_environment: Collection[str]
) -> list[ShownSetting]:
    """Return the settings of the reference, in its order.

    `from_environment`: the names that the environment set itself; the others in it are from the file of settings.
    """
    rows = []
    for name, default, meaning in _ROW.findall(reference):
        source = ""
        if name in environment:
            source = "environment" if name in from_environment else "file"
        value = masked(name, environment[name]) if source else plain(default)
        rows.append(ShownSetting(name, value, source, plain(meaning)))
    return rows


def masked(name: str, value: str) -> str:
    """Return a value as it may be shown: no secret, and of a URL neither user and password nor query."""
    if name in _SECRETS:
        return MASK if value else ""
    parts = value.split(",") if name == "PERFWORK_ARCHIVES" else [value]
    return ",".join(
        re.sub(r"\?.*", f"?{MASK}", _USER.sub(f"{MASK}@", part)) if "://" in part else part for part in parts
    )


def plain(markdown: str) -> str:
    """Return the text of a cell, without its marks."""
    return _LINK.sub(r"\1", markdown).replace("`", "").replace("\\|", "|").strip()


# --- `/outbox/<id>/edit/`: an operator edits the text of a mail that waits, before anybody gets it ---
# The lint looks at the edited text as at a composed one, and an edit can't change what was measured. An edited mail
# waits for approval, and shows who edited it; nothing composes over it.


@permission_required(SEND, "only operators can edit outgoing mail")
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the text in a form; take it, or say what is wrong with it and keep what was typed."""
    mail, now = get_object_or_404(OutgoingMail.objects.select_related("report__culprit"), pk=pk), timezone.now()
    text, status = mail.body, 200
    faults: tuple[str, ...] = ()
    if request.method == "POST" and request.POST.get("do") == "again":
        if mail_transitions.compose_again(mail, username(request), now):
            messages.info(request, "The edited text is dropped; the mail is composed again within a minute.")
        return redirect("outgoing-mail", pk)
    if request.method == "POST":
        text, status = cleaned(request.POST, "text", MAX_BYTES).replace("\r\n", "\n"), 400
        text = text if text.endswith("\n") else f"{text}\n"
        faults = _faults(mail, text, request.POST.get("version", ""))
        if not faults and mail_transitions.edit(mail, edited(bytes(mail.raw), text), text, username(request), now):
            messages.info(request, "The text is changed. The mail waits for approval.")
            return redirect("outgoing-mail", pk)
        faults = faults or (_CHANGED,)
    elif not mail_transitions.is_editable(mail):
        faults, status = (_GONE,), 409
    return render(request, "outbox_edit.html", {"mail": mail, "text": text, "faults": faults}, status=status)


_CHANGED = "the mail was changed in the meantime: copy what you typed, and open it again"
_GONE = "the mail is no longer waiting, so its text can't be changed"


def _faults(mail: OutgoingMail, text: str, version: str) -> tuple[str, ...]:
    if not mail_transitions.is_editable(mail):
        return (_GONE,)
    if version != mail.version or mail.stale:
        return (_CHANGED,)
    settings = bot_identity()
    tag = settings.tag_in(mail.sender)
    conventions = compose_config().conventions
    return edit_faults(bytes(mail.raw), mail.body, text, tag, settings, conventions, timezone.now())


# --- Rejected files ---


@require_POST
@permission_required(SEND, "only operators dismiss rejected files")
def dismiss_rejected(request: HttpRequest) -> HttpResponse:
    """Move the rejected files out of sight, which ends the problem on `/operating/`."""
    number = recognise.dismiss_rejected(settings.PERFWORK_DROP)
    messages.info(request, f"{counted(number, 'file')} moved to dismissed/ in the drop directory.")
    return redirect("operating")
