"""Changes of the code that no test can notice, each with the reason: `make mutation` counts them apart.

A change is known by its function and by the changed line. What is not here and survives is a gap in the tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# By reason: the function, and a piece of the line as it was changed to.
EQUIVALENT: Mapping[str, Sequence[tuple[str, str]]] = {
    "the default of a value that is never missing there, or whose every default leads to the same refusal": [
        ("_queued_fix_text", "next((since for _, since in report_state.fix_trees if since), None)"),
        ("_queued_fix_text", "next((tree for tree, _ in reversed(report_state.fix_trees) if tree), None)"),
        ("verified_by_server", 'get("header.d"'),
        ("verified_by_server", 'get("smtp.mailfrom", "XXXX")'),
        ("_signed_by", 'tags.get("d", "XXXX")'),
        ("_signed_by", 'tags.get("b", "XXXX")'),
        ("_signed_by", 'ones[0].get("b", "XXXX")'),
        ("_read", 'result.split() or ["XXXX"]'),
        ("_read", '(server.split() or ["XXXX"])'),
        ("authenticate", 'if name == "from"), "XXXX"'),
        ("verified_by_dkim", '"XXXX").lower()'),
        ("verified_by_dkim", "if not domain and not selector"),  # a signature without one of them is never valid
        ("verified_by_dkim", 'tags.get("b", None)'),
        ("verified_by_dkim", 'tags.get("b", )'),
        ("verified_by_dkim", 'tags.get("b", "XXXX")'),
        ("authenticate", 'tags.get("d", "XXXX")'),
        ("signed_names", 'tags.get("h", "XXXX")'),
        ("signed_by_developer", "if (found_names) or True"),
        ("signed_by_developer", 'if found_names else "XXXX"'),
        ("signed_by_developer", '(identity or "XXXX")'),
        ("authenticate", "if not address and len(raw) > MAX_BYTES"),  # a mail without an author is nobody's later, too
        ("other_readings", "inside = None"),  # a head does not begin with a continued line
        ("other_readings", "inside = True"),
    ],
    "a name or a value that is read without regard to case": [
        ("_headers", 'decode("ASCII"'),
        ("verify", 'encode("ASCII"'),
        ("other_readings", 'else "UTF-8"'),
        ("_plausible_headers", 'b"content-type: text/%s'),
        ("_plausible_headers", "b'content-type: multipart/%s"),
        ("_plausible_headers", 'b"MIXED"'),
        ("_plausible_headers", 'b"ALTERNATIVE"'),
        ("_plausible_headers", 'b"PLAIN"'),
        ("_plausible_headers", 'b"HTML"'),
    ],
    "addresses have one @ when they come here (bot/mail/addresses.py), and a domain one dot at its end at most": [
        ("verified_by_server", 'address.partition("@")'),
        ("authenticate", 'address.partition("@")'),
        ("verified_by_server", 'sender.partition("@")'),
        ("aligned", "rstrip(None)"),
        ("aligned", 'rstrip("XX.XX")'),
    ],
    "how an unknown kind of text or multipart is read (RFC 2046 sections 4.1.4 and 5.1.3): as plain, as mixed": [
        ("_plausible_headers", 'b"XXmixedXX"'),
        ("_plausible_headers", 'b"XXplainXX"'),
    ],
    "a key is ASCII, or no key; the library refuses what is not, and weak keys by default": [
        ("verify", 'record.encode("ascii", )'),
        ("verify", '"XXreplaceXX"'),
        ("verify", '"REPLACE"'),
        ("verify", "dkim.DKIM(raw, )"),
    ],
    "a limit by one": [
        ("_without_comments", "value[:20001]"),
        ("authenticate", "len(raw) >= MAX_BYTES"),
        ("signatures", "value[:8001]"),
        ("_delay", "min(before, 11)"),  # the longest delay is reached before
    ],
    "no result has two signs of equality that matter, and no quoted string ends elsewhere": [
        ("_read", 'method.rpartition("=")'),
        ("_read", 'part.rpartition("=")'),
        ("_unquoted", """'XX"XX'"""),
    ],
    "there is one signature, since two prove nothing": [("signed_by_developer", "break")],
    "the same value again": [
        ("_closed", "if (report_state.closed_at) or True"),
        ("_earlier", "if new <= old"),
        ("forget_fix", "fix_reverted_in"),  # whatever comes next says it
    ],
    "locks of rows are PostgreSQL's: `make matrix` notices what is no name there": [
        ("transition", "select_for_update(of="),
    ],
    "only another process can come in between": [
        ("claim", "filter(pk__in=keys, )"),
        ("mark_sent", "return True"),
    ],
}


def reason_of(mutant: str, change: str) -> str:
    """Return why nobody can notice a change; "" if somebody could. `change`: its lines, with their signs."""
    function = mutant.rpartition("__mutmut_")[0].rpartition(".")[2].removeprefix("x_").rpartition("ǁ")[2]
    changed = "\n".join(line for line in change.splitlines() if line.startswith("+")) or change
    found = ((reason, name, piece) for reason, changes in EQUIVALENT.items() for name, piece in changes)
    return next((reason for reason, name, piece in found if name == function and piece in changed), "")
