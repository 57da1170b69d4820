"""What can't be is refused by every door with the same words, and nothing is recorded: page, keys, API, mail."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.support.people import person
from tests.support.world import DANA, World, message_id
from tracker.models import Commit, Event, OutgoingMail, Report, Tree
from tracker.services.accounts import Scope, create_api_key
from tracker.services.report_actions import ACTION_KEYS

pytestmark = pytest.mark.django_db
TITLE = "mm/vmscan: walk cold folios first"
# By action: an argument that can't be, and what is said of it. {own} is the sha of the report's culprit, {mail} the
# Message-ID of its mail.
WRONG = {
    "queued": [("no-such-tree", "expected a followed tree (akpm)")],
    "fixed": [("v99.9", "v99.9 can't be released yet"), ("soon", "expected a version like v6.12-rc4")],
    "gone": [("v99.9", "v99.9 can't be released yet"), ("soon", "expected a version like v6.12-rc4")],
    "block": [
        ("v99.9", "v99.9 can't be released yet"),
        ("soon", "expected a version like v6.12-rc4"),
        ("v9.0", "v9.0 is older than the culprit, which landed in v9.1-rc1"),
    ],
    "proposed": [
        ("v9.1-rc1", "v9.1-rc1 is a version"),
        ("9.1", "9.1 is a version"),
        ("TBD", "found 'TBD'"),
        ("{own}", "is the report's own culprit"),
        (TITLE, "is the report's own culprit"),
        ("https://lore.kernel.org/r/{mail}", "leads to a report's own mail"),
    ],
    "duplicate": [
        ("https://lore.kernel.org/r/{mail}", "is the report itself"),
        ("http://127.0.0.1:8000/report/{own}/", "is the report itself"),
        ("{own}", "is the report itself"),
        ("123456789abc", "no report has 123456789a"),
        ("{own}0", "no report has"),
        ("the other one", "expected the sha of another report's culprit"),
        ("", "expected the sha of another report's culprit"),
    ],
    "note": [("", "expected some text"), ("much ado " * 1000, "expected at most 2,000 characters; found 8,999")],
    "tag": [
        ("", "expected some text"),
        ("numa <b>", "expected tags of letters, digits, - and _"),
        (" ".join(f"t{number}" for number in range(11)), "expected at most 10 tags; found 11"),
    ],
    "successor": [("{own}", "is the report itself"), ("123456789abc", "no report has 123456789a")],
    "assign": [("no-such-person", "expected a user's name, or an address"), ("", "expected some text")],
    "culprit": [
        ("no sha", "expected the sha of the culprit, or a range"),
        ("abcdef0123", "no commit is known here"),
        ("v9.1-rc1..v9.0", "expected the older version first"),
        ("v9.0..v99.9", "v99.9 can't be released yet"),
    ],
}
BY_MAIL = {
    "duplicate": "dup",
    "assign": "assign",
    "proposed": "fixed in",
}  # and no other command takes an argument that may be wrong
Door = Callable[[Client, World, Report, str, str], str]


def by_page(client: Client, world: World, report: Report, action: str, argument: str) -> str:
    """Without JavaScript: a page that says why, with what was typed."""
    posted = {"do": action, "row": f"{report.pk}:{report.revision}", "argument": argument, "next": "/"}
    answer = client.post("/triage/change/", posted)
    page = html.unescape(answer.content.decode())
    assert (answer.status_code, answer["Content-Type"]) == (400, "text/html; charset=utf-8")
    assert f">{argument}</textarea>" in page
    assert f'<option value="{action}" selected' in page
    return page


def by_key(client: Client, world: World, report: Report, action: str, argument: str) -> str:
    """As the script of the table does it: a line, and the field keeps what was typed."""
    posted = {"do": action, "row": f"{report.pk}:{report.revision}", "argument": argument, "next": "/"}
    answer = client.post("/triage/change/", posted, headers={"HX-Request": "true"})
    assert (answer.status_code, answer["Content-Type"]) == (400, "text/plain; charset=utf-8")
    return answer.content.decode()


def by_api(client: Client, world: World, report: Report, action: str, argument: str) -> str:
    token = create_api_key("a script", [Scope.TRIAGE], "", world.now, User.objects.get(username="olga"))[1]
    body = json.dumps({"do": action, "argument": argument, "revision": report.revision})
    address = f"/api/v1/reports/{report.culprit.sha}/actions"
    headers = {"Authorization": f"Bearer {token}"}
    answer = Client().post(address, body, content_type="application/json", headers=headers)
    assert answer.status_code == 400
    return str(answer.json())


def by_mail(client: Client, world: World, report: Report, action: str, argument: str) -> str:
    """A command: its writer is answered."""
    world.post(DANA, f"#lkp {BY_MAIL[action]}: {argument}", to=message_id(report))
    world.read()
    answer = OutgoingMail.objects.get(purpose__startswith="answer")
    return " ".join(bytes(answer.raw).decode().split())


DOORS: list[Door] = [by_page, by_key, by_api, by_mail]
CASES = [
    (door, action, argument, says)
    for door in DOORS
    for action, arguments in WRONG.items()
    for argument, says in arguments
    if door is not by_mail or (action in BY_MAIL and argument and not re.search("the other|://|: ", argument))
]


@pytest.fixture
def operator(client: Client) -> Client:
    user = person("triager", "olga", "olga@lab.example")
    client.force_login(user)
    return client


@pytest.mark.parametrize("named", ["{whole}", "{whole:.12}", "{whole:.10}"])
@pytest.mark.parametrize("door", [by_page, by_mail])
def test_a_culprit_that_is_known_by_few_digits_is_named_by_all(
    world: World, operator: Client, door: Door, named: str
) -> None:
    """Of what people report only as many digits are stored as they wrote, until git completes them."""
    report, other = world.report(TITLE), world.report("fs/ledger: flush the journal in one go")
    whole = other.culprit.sha
    Commit.objects.filter(pk=other.culprit.pk).update(sha=whole[:10])
    if door is by_mail:
        world.post(DANA, f"#lkp dup: {named.format(whole=whole)}", to=message_id(report))
        world.read()
    else:
        row = f"{report.pk}:{Report.objects.get(pk=report.pk).revision}"
        operator.post("/triage/change/", {"do": "duplicate", "row": row, "argument": named.format(whole=whole)})
    assert [event.remark for event in report.events.filter(kind="duplicate")] == [whole[:10]]


@pytest.mark.parametrize("argument", ["{sha}", '{sha:.12} ("mm: stop it")', "https://git.kernel.org/torvalds/c/{sha}"])
def test_a_fix_is_read_on_the_page_as_in_a_mail(world: World, operator: Client, argument: str) -> None:
    report, sha = world.report(TITLE), world.commit("mm: stop it")
    row = f"{report.pk}:{Report.objects.get(pk=report.pk).revision}"
    operator.post("/triage/change/", {"do": "proposed", "row": row, "argument": argument.format(sha=sha)})
    event = report.events.get(kind="fix_proposed")
    assert event.remark in (sha, sha[:12])
    assert event.title in ("", "mm: stop it")


@pytest.mark.parametrize(("door", "action", "argument", "says"), CASES)
def test_what_cannot_be_is_refused(
    world: World, operator: Client, door: Door, action: str, argument: str, says: str
) -> None:
    report = world.report(TITLE)
    world.tag("v9.1-rc1")
    world.track()
    Tree.objects.exclude(name="linus").delete()
    Tree.objects.filter(name="linus").update(name="akpm")
    report = Report.objects.select_related("culprit").get(pk=report.pk)
    before = (report.status, report.assignee, report.blocks, report.culprit.sha)
    told = door(operator, world, report, action, argument.format(own=report.culprit.sha, mail=message_id(report)))
    assert says in told
    assert set(Event.objects.filter(report=report).values_list("kind", flat=True)) <= {
        "reported",
        "landed",
        "responded",
    }
    after = Report.objects.select_related("culprit").get(pk=report.pk)
    if door is not by_mail:  # which is an answer, whatever else it says
        assert (after.status, after.assignee, after.blocks, after.culprit.sha) == before
    assert after.state in ("no_response", "responded")


@pytest.mark.parametrize("link", ["https://lore.kernel.org/r/{mail}", "https://perf.example.org/report/{sha:.12}/"])
def test_another_report_is_named_by_a_link_as_in_a_mail(world: World, operator: Client, link: str) -> None:
    report, other = world.report(TITLE), world.report("fs/ledger: flush the journal in one go")
    row = f"{report.pk}:{Report.objects.get(pk=report.pk).revision}"
    argument = link.format(mail=message_id(other), sha=other.culprit.sha)
    operator.post("/triage/change/", {"do": "duplicate", "row": row, "argument": argument})
    assert [event.remark for event in report.events.filter(kind="duplicate")] == [other.culprit.sha10]


def test_the_mail_of_another_report_is_no_fix(world: World, operator: Client) -> None:
    report, other = world.report(TITLE), world.report("fs/ledger: flush the journal in one go")
    row = f"{report.pk}:{Report.objects.get(pk=report.pk).revision}"
    link = f"https://lore.kernel.org/r/{message_id(other)}"
    answer = operator.post("/triage/change/", {"do": "proposed", "row": row, "argument": link})
    assert answer.status_code == 400
    assert not report.events.filter(kind="fix_proposed").exists()


def test_a_person_is_assigned_as_the_account_is_spelled_and_never_the_bot(world: World, operator: Client) -> None:
    report = world.report(TITLE)

    def assign(name: str) -> int:
        row = f"{report.pk}:{Report.objects.get(pk=report.pk).revision}"
        return operator.post("/triage/change/", {"do": "assign", "row": row, "argument": name}).status_code

    person("triager", "toni", "toni@lab.example")
    assert assign("TONI") == 302
    assert Report.objects.get(pk=report.pk).assignee == "toni"
    assert assign(world.settings.address) == 400


def test_every_argument_that_is_checked_is_tried() -> None:
    titles = {"proposed", "confirmed"}  # any title may be a fix's
    checked = {action.name for action in ACTION_KEYS if action.needs or action.offers} - titles
    assert checked <= WRONG.keys()


def test_a_duplicate_of_a_report_that_is_read_later_is_one_then(world: World) -> None:
    report = world.report(TITLE)
    later = world.commit("mm: another one")
    world.post(DANA, f"#lkp dup {later}", to=message_id(report))
    world.read()
    assert Report.objects.get().state == "responded"
    world.report("mm: another one", sha=later)
    world.read()
    assert Report.objects.get(pk=report.pk).status.endswith(f"a duplicate of {later[:10]}")


def test_other_bots_get_no_answer_and_nobody_is_nobody(world: World) -> None:
    report = world.report(TITLE)
    world.post(DANA, "#syz dup: 123456789abc", to=message_id(report))
    world.post(DANA, "#lkp assign me", to=message_id(report))
    world.read()
    assert not OutgoingMail.objects.filter(purpose__startswith="answer").exists()
    assert Report.objects.get().assignee == DANA.email
    world.post(DANA, "#lkp assign nobody", to=message_id(report))
    world.read()
    assert Report.objects.get().assignee == ""


def test_who_got_the_mail_of_a_report_can_be_assigned_and_its_lists_can_not(world: World) -> None:
    report = world.report(TITLE)
    mail = OutgoingMail.objects.get(report=report)
    mail.recipients, mail.lists = (
        [*mail.recipients, "Max@dev.example", "some-list@dev.example"],
        ["some-list@dev.example"],
    )
    mail.save()
    world.post(DANA, "#lkp assign some-list@dev.example", to=message_id(report))
    world.read()
    assert Report.objects.get().assignee == ""
    world.post(DANA, "#lkp assign max@dev.example", to=message_id(report))
    world.read()
    assert Report.objects.get().assignee == "max@dev.example"


def test_a_person_is_assigned_by_name_and_address(client: Client, world: World) -> None:
    report = world.report(TITLE)
    world.post(DANA, f"#lkp assign {DANA.name} <{DANA.email}>", to=message_id(report))
    world.read()
    assert Report.objects.get().assignee == DANA.email
    client.force_login(person("triager", "tina", "tina@lab.example"))
    report.refresh_from_db()
    written = f"{DANA.name} <{DANA.email}>"
    client.post("/triage/change/", {"do": "assign", "row": f"{report.pk}:{report.revision}", "argument": "nobody"})
    report.refresh_from_db()
    assert report.assignee == ""
    client.post("/triage/change/", {"do": "assign", "row": f"{report.pk}:{report.revision}", "argument": written})
    report.refresh_from_db()
    assert report.assignee == DANA.email
