"""Phoronix Test Suite: composite.xml, one kernel a file. Each result is a test, each of its raw values a sample. Pure.

`Proportion` says which direction is better (HIB, LIB). A document type or entity is refused: PTS writes none, and an
entity could make a small file expand without end.
"""

import re
from xml.etree import ElementTree

from bot.results.formats.benchmark import HIGHER, LOWER, Document, Metric, Reading, Test

NAME = "Phoronix composite.xml"
_KERNEL = re.compile(r"\bKernel: (\S+)")
_DIRECTIONS = {"HIB": HIGHER, "LIB": LOWER}


def recognises(document: Document) -> bool:
    return "<PhoronixTestSuite>" in document.text[:2000]


def read(document: Document) -> Reading:
    if "<!DOCTYPE" in document.text or "<!ENTITY" in document.text:
        document.fault("", "expected a composite.xml without a document type, found one")
        return Reading(())
    try:
        root = ElementTree.fromstring(document.text)
    except (ElementTree.ParseError, ValueError) as error:
        line = getattr(error, "position", (0, 0))[0]
        document.fault(f"line {line}", f"not XML, or cut short: {error}")
        return Reading(())
    tests, seen = [], set()
    for index, result in enumerate(root.iter("Result"), start=1):
        place = f"Result {index}"
        title, description = _text(result, "Identifier") or _text(result, "Title"), _text(result, "Description")
        if not title:
            document.fault(place, "expected an Identifier, found none")
            continue
        if (title, description) in seen:
            document.fault(place, f"{title[:80]} ({description[:60]}) stands twice")
        seen.add((title, description))
        entries = result.findall("Data/Entry")
        if len(entries) != 1:
            names = ", ".join(_text(entry, "Identifier")[:40] for entry in entries[:5])
            document.fault(place, f"expected the values of one kernel, found {len(entries)} entries: {names}")
            continue
        raw = _text(entries[0], "RawString") or _text(entries[0], "Value")
        samples = [document.number(part, place) for part in raw.split(":")] if raw else []
        if not raw:
            document.fault(place, f"{title[:80]}: expected a Value, found none: a run cut short?")
        proportion = _text(result, "Proportion")
        if proportion not in ("", *_DIRECTIONS):
            document.fault(place, f"expected the Proportion HIB or LIB, found {proportion[:20]!r}")
        version = re.sub(r"-\d+(?:\.\d+)*$", "", title.rpartition("/")[2])
        metric = Metric(
            f"phoronix-test-suite.{version}.result",
            tuple(sample for sample in samples if sample is not None),
            _text(result, "Scale")[:80],
            _DIRECTIONS.get(proportion, ""),
        )
        params = {"test": title, **({"description": description} if description else {})}
        tests.append(Test("phoronix-test-suite", params, (metric,) if metric.samples else ()))
    system = root.find("System")
    kernel = _KERNEL.search(_text(system, "Software")) if system is not None else None
    return Reading(
        tuple(tests),
        tool=f"Phoronix Test Suite {_text(root, 'Generated/TestClient')}".strip()[:80],
        kernel=kernel[1].rstrip(",")[:100] if kernel else "",
        machine=_text(system, "Identifier")[:200] if system is not None else "",
    )


def _text(element: ElementTree.Element, path: str) -> str:
    return " ".join((element.findtext(path) or "").split())
