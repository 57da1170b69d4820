"""All addresses of the pages and the API: address, view, name.

bot/urls.py, the root of all URLs, includes them. The first that fits is taken: `/v6.12/` before the subsystems, whose
names may be anything. The admin is discovered here and not in the settings, so that commands need not import it. A
name in an address may contain slashes.
"""

from collections.abc import Callable

from django.contrib import admin
from django.http.response import HttpResponseBase
from django.urls import path, re_path
from django.views.generic import RedirectView

from tracker.api import triage as api_triage
from tracker.api.tables import api
from tracker.pages import (
    accounts,
    browse,
    home,
    index,
    lab,
    measurements,
    operating,
    outbox,
    prose,
    release_report,
    report,
    review,
    search,
    statistics,
    studies,
    subscriptions,
)
from tracker.pages.browse import KINDS
from tracker.pages.triage import views as triage

admin.autodiscover()  # here and not in the settings, so that commands need not import it

_VERSION = r"(?P<version>v\d{1,3}\.\d{1,4}(?:\.\d{1,4})?)"
_REF = r"(?P<ref>[0-9a-fA-F]{7,64})"
_KIND = f"(?P<kind>{'|'.join(KINDS)})"
_TABLE_FORM = "(?P<form>json|csv|txt|md|atom|regzbot)"
_DOCUMENT_FORM = "(?P<form>txt|md|json)"
_COMPARISON_FORM = "(?P<form>txt|md|json|csv)"


def moved(name: str) -> Callable[..., HttpResponseBase]:
    """Redirect to the address of that name, for good."""
    return RedirectView.as_view(pattern_name=name, permanent=True, query_string=True)


urlpatterns = [
    # the front page
    path("", home.releases, name="releases"),
    # tables, one per release, and report actions
    re_path(r"^(?P<version>v\d{1,3}\.\d{1,4}(?:\.\d{1,4})?(?:-rc\d{1,2})?)/$", triage.triage, name="triage"),
    re_path(rf"^{_VERSION}/?\.{_TABLE_FORM}$", triage.triage_as, name="triage-as"),
    path("triage/news/", triage.news, name="triage-news"),
    path("triage/change/", triage.change, name="change-reports"),
    path("triage/undo/", triage.undo, name="undo-change"),
    # the release report in its formats
    re_path(rf"^{_VERSION}/report/$", release_report.report, name="release-report"),
    re_path(rf"^{_VERSION}/report\.{_DOCUMENT_FORM}$", release_report.as_form, name="release-report-as"),
    path("write/report/", release_report.edit, name="write-into-release-report"),
    re_path(rf"^write/note/{_KIND}/(?P<name>.+)/$", browse.write_note, name="write-note"),
    path("write/detail/", release_report.choose_highlight, name="choose-detail"),
    # single reports
    re_path(rf"^report/{_REF}/$", report.report, name="report"),
    re_path(rf"^report/{_REF}\.json$", report.as_json, name="report-json"),
    re_path(rf"^report/{_REF}\.csv$", report.findings_csv, name="report-csv"),
    re_path(rf"^{_VERSION}/findings\.csv$", report.findings_csv, name="findings-csv"),
    re_path(rf"^report/{_REF}\.mbox$", report.as_mbox, name="report-mbox"),
    re_path(rf"^report/{_REF}\.mbox\.gz$", report.as_packed_mbox, name="report-mbox-gz"),
    re_path(rf"^report/{_REF}/brief/$", report.brief, name="report-brief"),
    re_path(rf"^report/{_REF}/tables/$", report.tables, name="report-tables"),
    re_path(rf"^report/{_REF}/take-back/$", report.take_back, name="take-back"),
    # comparisons and studies, in their formats
    path("compare/", studies.compare, name="compare"),
    re_path(rf"^compare\.{_COMPARISON_FORM}$", studies.compare, name="compare-as"),
    path("studies/", studies.studies, name="studies"),
    path("studies/keep/", studies.save_study, name="keep-study"),
    path("studies/write/", studies.edit, name="write-into-study"),
    path("study/<slug:slug>/", studies.study, name="study"),
    re_path(rf"^study/(?P<slug>[-\w]+)\.{_COMPARISON_FORM}$", studies.as_form, name="study-as"),
    # measured kernels
    path("kernel/<path:handle>/", lab.kernel, name="kernel"),
    # the performance index
    path("index/", index.index, name="index"),
    path("index.json", index.as_json, name="index-as"),
    path("index.csv", index.as_csv, name="index-csv"),
    re_path(r"^index/(?P<version>v\d{1,3}\.\d{1,4}[\w.-]{0,20})\.csv$", index.point_csv, name="index-point-csv"),
    path("index/suites/", index.suites, name="index-suites"),
    path("index/basket/", index.show_basket, name="index-basket"),
    path("index/comment/", index.comment, name="index-comment"),
    re_path(r"^index/(?P<version>v\d{1,3}\.\d{1,4}[\w.-]{0,20})/$", index.point, name="index-point"),
    # profiles and counters
    path("tool-output/beside/", lab.beside, name="tool-output-beside"),
    path("tool-output/<int:pk>/", lab.one_file, name="tool-output"),
    path("tool-output/<int:pk>/raw/", lab.raw, name="tool-output-raw"),
    # signing in and out, saved views
    path("sign-in/", accounts.sign_in, name="sign-in"),
    path("sign-in/password/", accounts.by_password, name="sign-in-by-password"),
    path("sign-in/<str:token>/", accounts.by_link, name="sign-in-by-link"),
    path("no-mail/<str:token>/", accounts.confirm_opt_out, name="confirm-opt-out"),
    path("sign-out/", accounts.sign_out, name="sign-out"),
    path("views/", accounts.save_view, name="save-view"),
    path("views/<int:pk>/delete/", accounts.delete_view, name="delete-view"),
    # subsystems, machines, metrics and authors; names may contain slashes
    re_path(rf"^{_KIND}/$", browse.catalog, name="things"),
    re_path(rf"^{_KIND}/(?P<name>.+)/\.{_TABLE_FORM}$", browse.catalog_page_as, name="thing-as"),
    re_path(rf"^{_KIND}/(?P<name>.+)/$", browse.catalog_page, name="thing"),
    # curves and their changes
    path("curve/<int:pk>/", measurements.curve, name="curve"),
    path("curve/<int:pk>.csv", measurements.curve_csv, name="curve-csv"),
    path("curve/<int:pk>.svg", measurements.curve_svg, name="curve-svg"),
    path("curves/", measurements.curves, name="curves"),
    path("changes/", measurements.changes, name="changes"),
    re_path(r"^changes/(?P<pk>\d{1,18})/bisect\.(?P<form>json|sh)$", measurements.bisect, name="bisect-request"),
    # the search
    path("search/", search.search, name="search"),
    re_path(rf"^search/?\.{_TABLE_FORM}$", search.search_as, name="search-as"),
    path("search/suggestions/", search.offered, name="search-suggestions"),
    # what awaits whoever is signed in
    path("mine/", browse.mine, name="mine"),
    # what waits too long
    path("escalations/", browse.escalations, name="escalations"),
    # the statistics
    path("statistics/", statistics.statistics, name="statistics"),
    path("statistics.csv", statistics.statistics_csv, name="statistics-csv"),
    # how the installation stands
    path("operating/", operating.operating, name="operating"),
    path("operating/people/", accounts.people, name="people"),
    path("operating/try/", operating.try_now, name="try-now"),
    # the lab's work list and its jobs
    path("lab/", lab.lab, name="lab"),
    path("lab/job/<int:pk>/", lab.job, name="lab-job"),
    path("lab/job/<int:pk>/act/", lab.act, name="act-on-job"),
    # subscriptions by mail
    path("subscriptions/", subscriptions.my_subscriptions, name="subscriptions"),
    path("subscriptions/add/", subscriptions.subscribe, name="subscribe"),
    path("subscriptions/<int:pk>/end/", subscriptions.end, name="end-subscription"),
    path("unsubscribe/<str:token>/", subscriptions.unsubscribe, name="unsubscribe"),
    # webhooks
    path("webhooks/", subscriptions.my_webhooks, name="webhooks"),
    path("webhooks/add/", subscriptions.new_webhook, name="add-webhook"),
    path("webhooks/<int:pk>/", subscriptions.webhook, name="webhook"),
    path("webhooks/<int:pk>/change/", subscriptions.change_webhook, name="change-webhook"),
    # results as received
    path("results/", lab.results, name="results"),
    path("results/<int:pk>/", lab.result, name="result"),
    path("results/<int:pk>.json", lab.payload, name="result-payload"),
    # the review queue
    path("review/", review.review, name="review"),
    path("review/<int:pk>/decide/", review.decide, name="decide"),
    path("review/link/<str:token>/", review.by_link, name="decide-by-link"),
    path("review/decide/", review.decide_many, name="decide-many"),
    path("review/<int:pk>/undo/", review.undo, name="undo-decision"),
    path("review/undo/", review.undo_last, name="undo-decisions"),
    path("review/offers/<int:pk>/", review.decide_offer, name="decide-offer"),
    # outgoing mail
    path("outbox/", outbox.outbox, name="outbox"),
    path("outbox/act/", outbox.act, name="act-on-mail"),
    path("outbox/stop/", outbox.stop, name="stop-sending"),
    path("outbox/<int:pk>/", outbox.mail, name="outgoing-mail"),
    path("outbox/<int:pk>/raw/", outbox.raw, name="outgoing-mail-raw"),
    # the API; what programs of a lab call is in bot/urls.py
    path("api/v1/results/<int:pk>", api_triage.result, name="api-result"),
    path("api/v1/kernels/<path:handle>", api_triage.kernel, name="api-kernel"),
    path("api/v1/reports/<str:culprit>/actions", api_triage.act, name="act-on-report"),
    path("api/v1/suggestions/<int:pk>/decision", api_triage.decide, name="decide-suggestion"),
    path("api/v1/", api.urls),
    # probes
    path("healthz", operating.alive, name="alive"),
    path("readyz", operating.ready, name="ready"),
    # the documentation
    path("help/", prose.help_page, name="help-index"),
    path("help/<slug:name>/", lambda request, name: prose.help_page(request, f"{name}/"), name="help"),
    path("help/<path:name>", prose.help_page, name="help-file"),
    path("admin/", admin.site.urls),
    # addresses of before 2.0, which mails and bookmarks have
    path("inbox/", moved("review"), name="inbox"),
    path("evidence/<int:pk>/", moved("tool-output"), name="evidence"),
    path("evidence/<int:pk>/raw/", moved("tool-output-raw"), name="evidence-raw"),
    path("evidence/beside/", moved("tool-output-beside"), name="evidence-beside"),
]
