"""Markup in every text that pages show: none of it runs in a real browser."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Open
from tests.browser.made import SHA
from tests.browser.site import Site

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("hostile_pages")]  # one browser for all


@pytest.mark.long
def test_nothing_that_others_wrote_is_run(visit: Open, site: Site) -> None:
    page = visit("/", "kim")
    ask = "from tracker.models import *; r = Report.objects.get(tag='f' * 16);"
    ask += "print(r.outgoing.get().pk, r.results.get().pk, *r.tool_outputs.values_list('pk', flat=True))"
    mail, result, file, other = site.run("manage.py", "shell", "-v0", "-c", ask).split()
    seen = {"/", f"/report/{SHA}/", "/review/", f"/outbox/{mail}/", "/outbox/", "/results/", f"/results/{result}/"}
    seen |= {
        "/v6.19/",
        f"/report/{SHA}/brief/",
        f"/report/{SHA}/tables/",
        "/subsystem/",
        "/machine/",
        "/metric/",
        "/author/",
    }
    seen |= {"/v5.6/report/", "/study/hostile/", "/studies/", "/compare/", "/compare/?of=v9.1&of=v9.2", "/kernel/v9.2/"}
    seen |= {
        "/index/",
        "/index/v9.2/",
        "/index/basket/",
        f"/tool-output/{file}/",
        f"/tool-output/beside/?old={file}&new={other}",
    }
    seen |= {"/v5.6/report/?edit=introduction", "/study/hostile/?edit=conclusions", f"/index/v9.2/?edit={'a' * 12}"}
    for kind in ("subsystem", "machine", "metric", "author"):
        page.goto(f"{site.url}/{kind}/")
        hostile = page.locator("main a", has_text="<script>")
        assert hostile.count(), kind
        seen.add(str(hostile.first.get_attribute("href")))
    for path in sorted(seen):
        answer = page.goto(f"{site.url}{path}")
        assert answer is not None
        assert answer.status == 200, path
        text = answer.text()
        assert "owned" in text or path == "/", f"{path} shows nothing hostile, so it proves nothing"
        assert page.evaluate("document.title") != "owned", path
        assert page.locator("main img, main script").count() == 0, path
        assert "amp;49" not in text, path  # what {{7*7}} becomes if a template is rendered twice
        policy = answer.header_value("content-security-policy") or ""
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
