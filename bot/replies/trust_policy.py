"""What a mail may do by itself, by how far it is proven who wrote it (DESIGN rule 8)."""

from __future__ import annotations

from bot.mail.auth.verdict import AuthVerdict, Trust
from tracker.domain.events import Role


def may_act(policy: str, trust: Trust, role: Role | None, *, asks_much: bool, by_address: bool = True) -> bool:
    """Whether an effect of a mail needs no click. `asks_much`: it is a command, or would close the report.
    `by_address`: the writer is known here by the address that is proven, and not by a name.

    `open`: all mail counts. `verified`: unproven mail may move a report among its open states; what closes it, and
    commands, need proof; mail that a proof speaks against moves nothing. `maintainers`: only proven mail of author and
    maintainers acts.
    """
    if policy == "open":
        return True
    proven = trust.proven and by_address and role is not Role.THIRD_PARTY
    if policy == "maintainers":
        return proven and role in (Role.AUTHOR, Role.MAINTAINER)
    return proven or (trust.verdict is not AuthVerdict.FAIL and not asks_much)
