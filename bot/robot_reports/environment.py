"""How a report's numbers were measured: the testcase and its parameters, machine, config and compiler."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

# Until 2022 "in testcase: x", "on test machine: y", "with following parameters:".
_FIELD = re.compile(
    r"^(?:in |on |with following )?(?P<name>testcase|config|compiler|test machine|parameters|test-url):\s*(?P<value>.*)"
)
_PARAMETER = re.compile(r"\s+(?:([\w.:-]{1,80})|([^\s:][^:\n]{0,80})):(?:\s(.*)|\Z)")


@dataclass(frozen=True, slots=True)
class Testing:
    """The fields as written, "" if missing."""

    testcase: str = ""
    config: str = ""
    compiler: str = ""
    machine: str = ""
    test_url: str = ""
    parameters: tuple[tuple[str, str], ...] = ()


def find_testing(prose: Sequence[str]) -> Testing:
    """Parse the lines below `commit:`: the first of each field; parameters are the indented lines below their head."""
    fields = dict.fromkeys(("testcase", "config", "compiler", "test machine", "test-url"), "")
    parameters: list[tuple[str, str]] = []
    within = False
    for line in prose:
        if found := _FIELD.match(line):
            within = found["name"] == "parameters"
            if not fields.get(found["name"], "-"):
                fields[found["name"]] = found["value"].strip()
        elif within and line[:1].isspace() and line.strip():
            if pair := _PARAMETER.match(line):
                parameters.append((pair[1] or pair[2], (pair[3] or "").strip()))
            elif parameters:  # a wrapped value
                name, value = parameters.pop()
                parameters.append((name, f"{value} {line.strip()}".strip()))
        elif within and line.strip():
            within = False
    return Testing(
        testcase=fields["testcase"],
        config=fields["config"],
        compiler=fields["compiler"],
        machine=fields["test machine"],
        test_url=fields["test-url"],
        parameters=tuple(parameters),
    )
