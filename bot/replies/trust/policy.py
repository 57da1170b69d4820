"""What a mail may do by itself, by how far it is proven who wrote it (DESIGN rule 8)."""

from __future__ import annotations

from bot.replies.trust.verdict import Trust, Verdict
from tracker.status import Role


def may_act(policy: str, trust: Trust, role: Role | None, *, asks_much: bool) -> bool:
    """Whether an effect of a mail needs no click. `asks_much`: it is a command, or would close the report.

    `open`: all mail counts. `verified`: unproven mail may move a report among its open states; what closes it, and
    commands, need proof; mail that a proof speaks against moves nothing. `maintainers`: only proven mail of author and
    maintainers acts.
    """
    if policy == "open":
        return True
    if policy == "maintainers":
        return trust.proven and role in (Role.AUTHOR, Role.MAINTAINER)
    return trust.proven or (trust.verdict is Verdict.NONE and not asks_much)
