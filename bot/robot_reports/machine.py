"""Parse a machine description: "128 threads 2 sockets Intel(R) … @ 2.60GHz (Ice Lake) with 128G memory". Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PARTS = re.compile(
    r"(?:(?P<threads>\d{1,6}) threads?,?\s+)?(?:(?P<sockets>\d{1,4}) sockets?,?\s+)?(?P<cpu>.*?)"
    r"(?:(?:^|(?<=\s))\((?P<codename>[^()]{1,60})\))?(?:\s+with (?P<memory>\d[\d.]{0,8}\s?[KMGT]i?B?) memory)?\s*\Z"
)


@dataclass(frozen=True, slots=True)
class MachineParts:
    """The parts of a description; missing ones are None or "". `memory` is as written: "256G"."""

    threads: int | None = None
    sockets: int | None = None
    cpu: str = ""
    codename: str = ""
    memory: str = ""


def machine_parts(text: str) -> MachineParts:
    """Return the parts, with white space collapsed; text that doesn't match is all `cpu`."""
    found = _PARTS.match(" ".join(text[:500].split()))
    if not found:
        return MachineParts()
    cpu = found["cpu"].strip()
    is_name = not found["codename"] and re.fullmatch(r"[A-Z][a-z]+(?: [A-Z][a-z]+)*(?:-[A-Z]+)?", cpu) is not None
    return MachineParts(
        threads=int(found["threads"]) if found["threads"] else None,
        sockets=int(found["sockets"]) if found["sockets"] else None,
        cpu="" if is_name else cpu,
        codename=cpu if is_name else found["codename"] or "",
        memory=found["memory"] or "",
    )
