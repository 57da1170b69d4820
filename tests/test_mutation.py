"""Changes that nobody can notice are told from gaps by function and line, and name functions that exist."""

from __future__ import annotations

import re

from tests.conftest import ROOT
from tests.equivalent_changes import EQUIVALENT, reason_of
from tests.mutation import PARTS


def test_a_change_is_known_by_its_function_and_its_line() -> None:
    line = "-    return tag if new < old else known\n+    return tag if new <= old else known"
    assert reason_of("tracker.domain.report_state.x__earlier__mutmut_18", line) == "the same value again"
    assert reason_of("tracker.domain.report_state.x__later__mutmut_18", line) == ""
    assert reason_of("tracker.domain.report_state.x__earlier__mutmut_3", "-    a\n+    b") == ""
    method = "bot.mail.settings.xǁTrustAnchorsǁaligned__mutmut_7"
    assert reason_of(method, "+    own = domain.rstrip(None)")
    assert not reason_of(method, "-    own = domain.rstrip(None)\n+    own = None")


def test_the_functions_exist() -> None:
    files = {path for part in PARTS.values() for pattern in part.files for path in ROOT.glob(pattern)}
    defined = {name for path in files for name in re.findall(r"def (\w+)\(", path.read_text())}
    assert {name for changes in EQUIVALENT.values() for name, _ in changes} <= defined
