"""Which effects of a mail may be automatic, given the proof of who wrote it (DESIGN rule 8)."""

from __future__ import annotations

from bot.mail.auth.verdict import AuthVerdict, Trust
from tracker.domain.events import Role


def may_act(policy: str, trust: Trust, role: Role | None, *, needs_proof: bool, by_address: bool = True) -> bool:
    """Whether an effect of a mail needs no click. `needs_proof`: it is a command, or would close the report.
    `by_address`: the writer is known by the verified address, not only by name.

    `open`: all mail acts. `verified`: unverified mail may move a report between open states; closing it, and
    commands, need proof; mail whose proof fails does not act. `maintainers`: only verified mail from author and
    maintainers acts.
    """
    if policy == "open":
        return True
    proven = trust.proven and by_address and role is not Role.THIRD_PARTY
    if policy == "maintainers":
        return proven and role in (Role.AUTHOR, Role.MAINTAINER)
    return proven or (trust.verdict is not AuthVerdict.FAIL and not needs_proof)
