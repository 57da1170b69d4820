"""Every library that runs with Perfwork has a licence that goes with GPL-2.0-or-later.

Some go with version 3 only (Apache-2.0, LGPL-3.0), so all of it together is under GPL-3.0-or-later, which "or later"
allows: https://www.gnu.org/licenses/license-list.html.
"""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator

from packaging.requirements import Requirement

from tests.conftest import ROOT

COMPATIBLE = re.compile(
    r"0BSD|Apache(?:-2\.0| Software License)|BSD(?:-[23]-Clause| License)|CC0-1\.0|GPL-2\.0-or-later|\(GPLv[23]\+\)|"
    r"ISC|LGPL-3\.0-only|MIT(?:-0| License)?|MPL[- ]2\.0|PSF-2\.0|Zlib|Zope Public License"
)
# What their metadata says in words of their own, read in their source.
READ = {
    "dkimpy": "the licence of zlib",
    "pygit2": "GPL-2.0-only with a linking exception: no limit on what it is linked with",
}


def installed() -> Iterator[importlib.metadata.Distribution]:
    """Yield what requirements.txt brings, with all that it needs here."""
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    left = [line.partition("#")[0].strip() for line in lines if line.partition("#")[0].strip()]
    seen: set[str] = set()
    while left:
        wanted = Requirement(left.pop())
        name = re.sub(r"[-_.]+", "-", wanted.name).lower()
        if name in seen or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        seen.add(name)
        found = importlib.metadata.distribution(wanted.name)
        yield found
        for each in found.requires or ():
            needed = Requirement(each)
            chosen = (
                any(needed.marker.evaluate({"extra": extra}) for extra in ("", *wanted.extras))
                if needed.marker
                else True
            )
            left += [f"{needed.name}[{','.join(needed.extras)}]" if needed.extras else needed.name] if chosen else []


def licence_of(found: importlib.metadata.Distribution) -> str:
    about = found.metadata
    classified = [each.rpartition("::")[2].strip() for each in about.get_all("Classifier", []) if "License ::" in each]
    return about.get("License-Expression") or "; ".join(classified) or (about.get("License") or "").strip()[:100]


def test_every_licence_goes_with_ours() -> None:
    known = {re.sub(r"[-_.]+", "-", each.metadata["Name"]).lower(): licence_of(each) for each in installed()}
    assert len(known) > 60
    assert {name: text for name, text in known.items() if name not in READ and not COMPATIBLE.search(text)} == {}
    assert known.keys() >= READ.keys(), "a licence that was read is of nothing that is used"
