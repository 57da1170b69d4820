"""Who wrote a mail: signatures with test keys, forged ones, and the headers of trusted servers."""

from __future__ import annotations

import base64
import subprocess
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import patatt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.signing import SigningKey

from bot import config
from bot.config import KeyCache
from bot.mail import authentication
from bot.mail.authentication import CLOCK, UNPROVEN, AuthVerdict, Trust, authenticate, dkimpy, joined, other_readings
from bot.mail.message import parse
from bot.mail.settings import TrustAnchors
from bot.replies.gate import Caused, Standing, permitted
from tests.support import rsa_keys
from tests.support.needs import need
from tracker.domain.events import Role
from tracker.models import SigningKey as ModelsSigningKey

# --- Who wrote a mail: signatures with test keys, forged ones, and the headers of trusted servers ---

dkim = dkimpy()
SENT = datetime(2026, 3, 11, 9, 15, tzinfo=UTC).timestamp()
SECRET = SigningKey(b"\x07" * 32)
RECORD = f"v=DKIM1; k=ed25519; p={base64.b64encode(bytes(SECRET.verify_key)).decode()}"
KEYS = {"s1._domainkey.dev.example": RECORD}
DKIM = TrustAnchors(key=KEYS.get, signs=lambda domain: domain == "dev.example")
PLAIN = b"""\
From: Dana Brook <dana@dev.example>
To: perfbot@bot.example.org
Date: Wed, 11 Mar 2026 10:15:00 +0100
Message-ID: <a@dev.example>
In-Reply-To: <report@bot.example.org>
Subject: Re: the report

It is the lock.
"""
SIGNED_HEADERS = [b"from", b"to", b"cc", b"date", b"message-id", b"subject", b"in-reply-to", b"references"]


def signed(mail: bytes = PLAIN, domain: bytes = b"dev.example", **options: object) -> bytes:
    """The mail with a DKIM signature above it."""
    options.setdefault("include_headers", SIGNED_HEADERS)
    secret = base64.b64encode(bytes(SECRET))
    token = CLOCK.at.set(SENT)  # the signature tells when it was made
    try:
        made = dkim.sign(mail, b"s1", domain, secret, signature_algorithm=b"ed25519-sha256", **options)
    finally:
        CLOCK.at.reset(token)
    return made.replace(b"\r\n", b"\n") + mail


def verdict(raw: bytes, anchors: TrustAnchors = DKIM) -> AuthVerdict:
    return authenticate(raw, parse(raw), anchors).verdict


@pytest.mark.parametrize("frame", [b"", b"\n\n", b"\xef\xbb\xbf", b"From dana Wed Mar 11 10:15:00 2026\n"])
def test_what_a_mailbox_puts_above_the_head_takes_no_proof_away(frame: bytes) -> None:
    assert verdict(frame + signed()) is AuthVerdict.PASS


def test_no_key_is_so_large_that_it_takes_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """RSA takes cubic time: with a key of 26,000 bits, which anybody may publish, half a minute."""
    verified: list[int] = []
    monkeypatch.setattr(dkim.DKIM, "verify", lambda self, **options: verified.append(1) or True)
    largest = "v=DKIM1; k=rsa; p=" + "A" * 736  # 4,096 bits
    assert verdict(signed(), replace(DKIM, key=lambda name: largest)) is AuthVerdict.PASS
    assert verdict(signed(), replace(DKIM, key=lambda name: largest * 2)) is AuthVerdict.FAIL
    assert len(verified) == 1


def test_a_signature_of_the_writers_domain_proves_him() -> None:
    found = authenticate(signed(), parse(signed()), DKIM)
    assert (found.verdict, found.by) == (AuthVerdict.PASS, "dkim dev.example")
    assert found.covers("to", "cc", "in-reply-to", "references", "message-id")
    assert not found.covers_body  # Content-Type was not signed: whoever resends the mail may add one


@pytest.mark.parametrize("address", [b"perf@lists.dev.example", b"linux-mm@kvack.org", b"perf@dev.example"])
def test_a_list_that_signs_its_own_address_proves_no_writer(address: bytes) -> None:
    """Mailing list software does so for domains that forbid others to send their mail."""
    domain = address.partition(b"@")[2]
    raw = signed(PLAIN.replace(b"Dana Brook <dana@dev.example>", b"Mal via perf <" + address + b">"), domain)
    anchors = TrustAnchors(key=lambda name: RECORD, lists=frozenset({"perf@dev.example"}))
    assert authenticate(raw, parse(raw), anchors).verdict is AuthVerdict.NONE
    assert authenticate(raw, parse(raw), replace(anchors, lists=frozenset())).proven is (address == b"perf@dev.example")


def test_a_person_at_a_host_that_is_called_list_is_a_person() -> None:
    raw = signed(PLAIN.replace(b"dana@dev.example", b"dana@list.ru"), b"list.ru")
    assert authenticate(raw, parse(raw), TrustAnchors(key=lambda name: RECORD)).proven


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (signed().replace(b"the lock", b"the luck"), AuthVerdict.FAIL),
        (signed().replace(b"dana@", b"lee@"), AuthVerdict.FAIL),
        (PLAIN, AuthVerdict.FAIL),  # the domain signs, and this is not signed
        (PLAIN.replace(b"dev.example>\nTo", b"elsewhere.example>\nTo"), AuthVerdict.NONE),
        (signed(domain=b"evil.example"), AuthVerdict.FAIL),  # a domain that may not speak for hers
        (b"From: Lee <lee@dev.example>\n" + signed(), AuthVerdict.NONE),  # which of the two writes?
        (signed(include_headers=[b"from", b"subject"]), AuthVerdict.NONE),  # its date says when it was said
        (b"In-Reply-To: <other@x>\n" + signed(), AuthVerdict.NONE),
        (b"Message-ID: <other@x>\n" + signed(), AuthVerdict.NONE),
        (b"X-A: b\nFrom : Lee <lee@dev.example>\n" + signed(), AuthVerdict.NONE),
        (b"X-A: b\rFrom: Lee <lee@dev.example>\r\r" + signed(), AuthVerdict.NONE),
        (signed().replace(b"Subject:", b"some junk\nSubject:"), AuthVerdict.NONE),
        (signed(PLAIN.replace(b"<dana@dev.example>", b"<dana@dev.example>, lee@dev.example")), AuthVerdict.NONE),
        (signed(length=True) + b"\n#lkp invalid\n", AuthVerdict.NONE),  # only the beginning is signed
        (signed().replace(b"s=s1", b"s=s2"), AuthVerdict.NONE),  # a key that nobody knows
    ],
)
def test_what_is_not_proven(raw: bytes, expected: AuthVerdict) -> None:
    assert verdict(raw) is expected


def test_a_signature_that_has_expired_since_was_good_when_the_mail_was_sent() -> None:
    made = signed()
    assert f"t={int(SENT)}".encode() in made
    at = CLOCK.at.set(SENT - 10 * 24 * 3600)  # made ten days after the mail says that it was sent
    assert CLOCK.time() == SENT - 10 * 24 * 3600
    CLOCK.at.reset(at)
    undated = CLOCK.at.set(0.0)
    assert CLOCK.time() == 0, "what a mail without a date proves does not depend on when it is read"
    CLOCK.at.reset(undated)
    assert verdict(made) is AuthVerdict.PASS
    late = PLAIN.replace(b"11 Mar 2026", b"1 Mar 2026")
    assert verdict(signed(late)) is AuthVerdict.FAIL


@pytest.mark.parametrize(("bits", "expected"), [(1024, AuthVerdict.PASS), (1016, AuthVerdict.FAIL)])
def test_an_rsa_key_below_1024_bits_proves_nothing(bits: int, expected: AuthVerdict) -> None:
    """RFC 8301 section 3.2."""
    private, public = rsa_keys.KEYS[bits]
    token = CLOCK.at.set(SENT)
    made = dkim.sign(PLAIN, b"s1", b"dev.example", private, include_headers=SIGNED_HEADERS)
    CLOCK.at.reset(token)
    record = f"v=DKIM1; k=rsa; p={public}"
    anchors = TrustAnchors(key={"s1._domainkey.dev.example": record}.get)
    assert verdict(made.replace(b"\r\n", b"\n") + PLAIN, anchors) is expected


def test_a_second_at_sign_in_an_address_borrows_no_domain() -> None:
    """A quoted local part may hold anything (RFC 5321 section 4.1.2)."""
    borrowed = PLAIN.replace(b"<dana@dev.example>", b'<"dana@dev.example"@evil.example>')
    assert verdict(GOOD + OUTSIDE + CLAIM + borrowed, SERVER) is AuthVerdict.NONE
    assert verdict(signed(borrowed)) is AuthVerdict.NONE


def test_people_may_sign_with_another_domain_of_theirs() -> None:
    raw = signed(domain=b"dev.example", mail=PLAIN.replace(b"dana@dev.example", b"dana@kernel.example"))
    assert verdict(raw) is AuthVerdict.NONE
    hers = TrustAnchors(key=KEYS.get, signers={"dana@kernel.example": frozenset({"dev.example"})})
    assert verdict(raw, hers) is AuthVerdict.PASS


@pytest.mark.parametrize(
    ("address", "domain", "expected"),
    [
        ("a@dev.example", "dev.example", True),
        ("a@dev.example", "DEV.example.", True),
        ("a@dev.example", ".dev.example", False),
        ('"x@evil.example"@dev.example', "dev.example", True),
        ('"x@dev.example"@evil.example', "dev.example", False),
        ("a@mail.dev.example", "dev.example", True),
        ("a@dev.example", "lists.dev.example", False),  # a list's server signs whatever is sent to the list
        ("a@dev.example", "example", False),
        ("a@mail.dev.example", "list.dev.example", False),
        ("a@eu.mail.dev.example", "dev.example", True),
        ("a@dev.co.uk", "co.uk", False),  # public suffixes
        ("a@mail.dev.co.uk", "dev.co.uk", True),
        ("a@mail.example.xn--p1ai", "example.xn--p1ai", True),  # an encoded IDN
        ("a@example.xn--p1ai", "xn--p1ai", False),
        ("a@one.github.io", "github.io", False),
        ("a@one.github.io", "two.github.io", False),
        ("a@github.io", "github.io", True),
        ("a@dev.example", "", False),
        ("a@d\u00e9v.example", "example", False),
        ("a@notdev.example", "dev.example", False),
    ],
)
def test_alignment(address: str, domain: str, expected: bool) -> None:
    assert TrustAnchors().aligned(address, domain) is expected


SERVER = TrustAnchors(servers=frozenset({"mx.list.example", ".archive.example"}))
OUTSIDE = b"Received: from mail.dev.example (mail.dev.example [192.0.2.7])\n\tby mx.list.example with ESMTPS\n"
INSIDE = b"Received: from localhost (localhost [127.0.0.1]) by mx.list.example with ESMTP\n"
GOOD = b"Authentication-Results: mx.list.example; dkim=pass (2048-bit key) header.d=dev.example header.i=@dev.example\n"
DMARC = b"Authentication-Results: mx.list.example;\n\tdmarc=pass (p=none) header.from=dev.example\n"
AR = b"Authentication-Results: mx.list.example; "
CLAIM = b"DKIM-Signature: v=1; d=dev.example; s=s1; h=from:date; bh=x; b=eHh4\n"  # valid, says the server
NAMELESS = b"Received: from a1.archive.example ([192.0.2.7]) by mx.list.example with ESMTP\n"
COMMENTED = b"Authentication-Results: mx.list.example; dkim=pass (header.d=dev.example) header.d=evil.example\n"
STRANGER = b"Received: from x (x [192.0.2.9]) by stranger.example with SMTP\n"


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (GOOD + OUTSIDE, AuthVerdict.PASS),
        (INSIDE + GOOD + OUTSIDE, AuthVerdict.PASS),
        (DMARC + OUTSIDE, AuthVerdict.NONE),  # by SPF, perhaps, of an envelope that a list made
        (
            b"Received: from mx.list.example (mx.list.example [192.0.2.1]) by a1.archive.example\n" + GOOD + OUTSIDE,
            AuthVerdict.PASS,
        ),
        # Forged: written by the sender below the line with which the server took the mail in.
        (OUTSIDE + GOOD, AuthVerdict.NONE),
        (OUTSIDE + GOOD + OUTSIDE, AuthVerdict.NONE),
        (OUTSIDE.replace(b"from mail.dev.example", b"from [127.0.0.1]") + GOOD + OUTSIDE, AuthVerdict.NONE),
        (STRANGER + GOOD + OUTSIDE, AuthVerdict.NONE),  # it came past somebody whom we don't trust
        (GOOD, AuthVerdict.NONE),  # no server took it in
        (GOOD.replace(b"mx.list", b"mx.evil") + OUTSIDE, AuthVerdict.NONE),
        (GOOD.replace(b"header.d=dev", b"header.d=evil") + OUTSIDE, AuthVerdict.NONE),
        (DMARC.replace(b"from=dev", b"from=evil") + OUTSIDE, AuthVerdict.NONE),
        (COMMENTED + OUTSIDE, AuthVerdict.NONE),
        (DMARC.replace(b"dmarc=pass", b"dmarc=fail") + OUTSIDE, AuthVerdict.FAIL),
        (GOOD + DMARC.replace(b"dmarc=pass", b"dmarc=fail") + OUTSIDE, AuthVerdict.FAIL),
        # What the sender chose himself: his envelope, his local part, his comments, his name for himself.
        (
            AR + b'spf=pass smtp.mailfrom="x; dmarc=pass header.from=dev.example"@evil.example\n' + OUTSIDE,
            AuthVerdict.NONE,
        ),
        (AR + b"dkim=pass header.i=header.d=dev.example@evil.example\n" + OUTSIDE, AuthVerdict.NONE),
        # Only the identity is named, as Gmail does it (RFC 8601 section 2.7.1).
        (AR + b"dkim=pass header.i=@dev.example header.b=eHh4\n" + OUTSIDE, AuthVerdict.PASS),
        (AR + b"dkim=pass header.i=@dev.example.evil.example\n" + OUTSIDE, AuthVerdict.NONE),
        (AR + b"dkim=pass header.i=dana@evil.example\n" + OUTSIDE, AuthVerdict.NONE),
        (
            AR + b"dkim=fail ((x); dkim=pass header.d=dev.example (y)) header.d=evil.example\n" + OUTSIDE,
            AuthVerdict.NONE,
        ),
        # A parenthesis that nothing opened closes no comment that comes later.
        (AR + b"spf=none a); b (; dkim=pass header.d=dev.example )\n" + OUTSIDE, AuthVerdict.NONE),
        (AR + b"spf=none a); dkim=pass header.d=dev.example\n" + OUTSIDE, AuthVerdict.PASS),
        (AR + b"spf=fail (x \\) y; dkim=pass header.d=dev.example; (z)\n" + OUTSIDE, AuthVerdict.NONE),
        (AR + b"spf=fail (x \\\\) y; dkim=pass header.d=dev.example\n" + OUTSIDE, AuthVerdict.PASS),
        (NAMELESS + GOOD + OUTSIDE, AuthVerdict.NONE),
        # A client that says in its name for itself that it came from inside
        (
            b"Received: from a by mx.list.example with LMTP (mail.evil.example [192.0.2.9])\n"
            b"\tby mx.list.example with ESMTP\n" + GOOD + OUTSIDE,
            AuthVerdict.NONE,
        ),
        (NAMELESS.replace(b" ([192.0.2.7])", b"") + GOOD + OUTSIDE, AuthVerdict.NONE),
    ],
)
def test_results_of_a_trusted_server_count_where_only_it_can_have_put_them(head: bytes, expected: AuthVerdict) -> None:
    assert verdict(head + CLAIM + PLAIN, SERVER) is expected


VERP = b"spf=pass smtp.mailfrom=linux-perf+bounces-77-reader@dev.example; dkim=none;"


@pytest.mark.parametrize(
    "head",
    [
        GOOD,  # the signature that was valid is gone
        DMARC,
        AR + b"spf=pass smtp.mailfrom=dana@dev.example; dmarc=pass header.from=dev.example\n",
        AR + VERP + b" dmarc=pass header.from=dev.example\n",
        AR
        + b"spf=pass smtp.mailfrom=SRS0=x=tt=dev.example=dana@lists.dev.example; dmarc=pass header.from=dev.example\n",
        GOOD + CLAIM.replace(b"d=dev", b"d=evil"),  # another one's
        AR
        + b"dkim=pass header.d=evil.example; dmarc=pass header.from=dev.example\n"
        + CLAIM.replace(b"d=dev", b"d=evil"),
        GOOD + 6 * CLAIM,  # which of them the server means isn't known
    ],
)
def test_without_a_valid_signature_of_the_writers_domain_in_the_mail_nothing_is_proven(head: bytes) -> None:
    results, signature, rest = head.partition(b"DKIM-Signature")
    assert verdict(results + OUTSIDE + signature + rest + PLAIN, SERVER) is AuthVerdict.NONE


NAMED = AR + b'dkim=pass header.d=dev.example header.b="@"\n'


def b_of(raw: bytes) -> bytes:
    """The first eight characters of a signature, as a server names it (RFC 6008)."""
    return b"".join(raw.rpartition(b" b=")[2].split())[:8]


def alike(raw: bytes) -> bytes:
    """A signature that nobody made: it begins like another one, and claims to cover more."""
    names = b"from:to:cc:date:subject:message-id:in-reply-to:references:content-type"
    return (
        b"DKIM-Signature: v=1; a=ed25519-sha256; d=dev.example; s=s1; h=" + names + b"; bh=x; b=" + b_of(raw) + b"x\n"
    )


ONLY_SUBJECT = signed(include_headers=[b"from", b"date", b"subject"])


@pytest.mark.parametrize(
    ("raw", "covered"),
    [
        (OUTSIDE + PLAIN, ""),
        (GOOD + OUTSIDE + PLAIN, ""),  # the signature is gone: nobody knows what it covered
        (GOOD + OUTSIDE + ONLY_SUBJECT, "subject"),
        (GOOD + OUTSIDE + signed(), "subject to in-reply-to"),
        (GOOD + OUTSIDE + signed(length=True), ""),
        # Of two signatures by one domain the server may have meant either.
        (GOOD + OUTSIDE + ONLY_SUBJECT[: -len(PLAIN)] + signed(), "subject"),
        (
            NAMED.replace(b"@", b_of(signed())) + OUTSIDE + ONLY_SUBJECT[: -len(PLAIN)] + signed(),
            "subject to in-reply-to",
        ),
        (NAMED.replace(b"@", b_of(ONLY_SUBJECT)) + OUTSIDE + ONLY_SUBJECT[: -len(PLAIN)] + signed(), "subject"),
        (NAMED.replace(b"@", b"other") + OUTSIDE + signed(), ""),
        # Made up beside the genuine one, to cover more: five that hide it, or one that begins like it.
        (NAMED.replace(b"@", b_of(ONLY_SUBJECT)) + OUTSIDE + 5 * alike(ONLY_SUBJECT) + ONLY_SUBJECT, ""),
        (NAMED.replace(b"@", b_of(ONLY_SUBJECT)) + OUTSIDE + alike(ONLY_SUBJECT) + ONLY_SUBJECT, ""),
    ],
)
def test_what_a_server_found_valid_covers_what_the_signature_says(raw: bytes, covered: str) -> None:
    found = authenticate(raw, parse(raw), SERVER)
    names = ("subject", "to", "in-reply-to", "content-type")
    assert [name for name in names if found.covers(name)] == covered.split()


def test_a_proof_says_who_found_it_and_which_signature_it_was() -> None:
    """Two mails with one signature are copies of one mail: an identity that is lost lets both act."""
    by_us, by_server = (authenticate(raw, parse(raw), anchors) for raw, anchors in
                        ((signed(), DKIM), (GOOD + OUTSIDE + signed(), SERVER)))  # fmt: skip
    b = b"".join(signed()[: -len(PLAIN)].rpartition(b" b=")[2].split()).decode()
    assert (by_us.by, by_us.signature) == ("dkim dev.example", b[:64])
    assert (by_server.by, by_server.signature) == ("mx.list.example: dkim dev.example", b[:64])
    two = GOOD + OUTSIDE + ONLY_SUBJECT[: -len(PLAIN)] + signed()
    assert authenticate(two, parse(two), SERVER).signature == "", "which of them it meant is not known"
    failed = DMARC.replace(b"dmarc=pass", b"dmarc=fail") + OUTSIDE + PLAIN
    assert authenticate(failed, parse(failed), SERVER).by == "mx.list.example: dmarc dev.example"


@pytest.mark.parametrize(
    ("raw", "anchors", "by"),
    [
        (PLAIN, DKIM, "unsigned, though dev.example signs its mail"),
        (signed().replace(b"the lock", b"the luck"), DKIM, "dkim dev.example"),
    ],
)  # fmt: skip
def test_every_verdict_says_by_what(raw: bytes, anchors: TrustAnchors, by: str) -> None:
    assert authenticate(raw, parse(raw), anchors).by == by


def test_a_signature_with_an_unknown_key_hides_none_below_it() -> None:
    unknown = signed()[: -len(PLAIN)].replace(b"s=s1", b"s=s2")
    assert verdict(unknown + signed()) is AuthVerdict.PASS
    stranger = signed(domain=b"evil.example")[: -len(PLAIN)]
    assert verdict(stranger + signed()) is AuthVerdict.PASS


@pytest.mark.parametrize("odd", [b"\0", b"\r"])
def test_an_odd_byte_in_the_head_proves_nothing_and_in_the_body_takes_nothing_away(odd: bytes) -> None:
    raw = GOOD + OUTSIDE + CLAIM + PLAIN
    assert verdict(raw.replace(b"Subject: Re:", b"Subject: Re" + odd + b":"), SERVER) is AuthVerdict.NONE
    assert verdict(raw + odd + b"\n\nmore words\n", SERVER) is AuthVerdict.PASS
    assert verdict((raw + b"\nmore words\n").replace(b"\n", b"\r\n"), SERVER) is AuthVerdict.PASS


def test_what_several_proofs_cover_together() -> None:
    one = Trust(AuthVerdict.PASS, "a", frozenset({"from"}), "")
    other = Trust(AuthVerdict.PASS, "b", frozenset({"to"}), "s")
    whole = Trust(AuthVerdict.PASS, "c")
    assert joined([UNPROVEN, one, other]) == Trust(AuthVerdict.PASS, "a", frozenset({"from", "to"}), "s")
    assert joined([one, whole]) == Trust(AuthVerdict.PASS, "a", None, "")
    assert joined([UNPROVEN, Trust(AuthVerdict.FAIL, "x")]) == UNPROVEN


def test_a_signature_of_the_writer_and_the_date_is_the_least_that_counts() -> None:
    least = signed(include_headers=[b"from", b"date"])
    found = authenticate(least, parse(least), DKIM)
    assert found.proven
    assert not found.covers("subject")
    assert not authenticate(signed(include_headers=[b"from"]), parse(PLAIN), DKIM).proven


@pytest.mark.parametrize(
    "junk", [b"", b"v=1; d=; s=; h=; b=", b"d=dev.example", b"d=dev.example; s=s1; b=x", b"h=from:date", b"b=x; l=3"]
)
def test_a_signature_that_lacks_its_tags_proves_nothing_and_hides_no_other(junk: bytes) -> None:
    raw = b"DKIM-Signature: " + junk + b"\n" + signed()
    assert verdict(raw) is AuthVerdict.PASS
    by_server = authenticate(found := GOOD + OUTSIDE + b"DKIM-Signature: " + junk + b"\n" + PLAIN, parse(found), SERVER)
    assert not by_server.covers("subject"), "the server found something valid, and this is not what it was"
    alone = b"DKIM-Signature: " + junk + b"\n" + PLAIN
    assert verdict(alone) is not AuthVerdict.PASS


def test_a_server_that_found_a_part_valid_proves_nothing() -> None:
    assert verdict(GOOD + OUTSIDE + signed(length=True) + b"\n#lkp invalid\n", SERVER) is AuthVerdict.NONE


def test_a_developers_key(tmp_path: Path) -> None:
    keyring = tmp_path / "keys"
    key_dir = keyring / "ed25519" / "dev.example" / "dana"
    key_dir.mkdir(parents=True)
    (key_dir / "default").write_bytes(base64.b64encode(bytes(SECRET.verify_key)))
    (tmp_path / "secret").write_bytes(base64.b64encode(bytes(SECRET)))
    config = {"signingkey": f"ed25519:{tmp_path}/secret", "identity": "dana@dev.example", "selector": "default"}
    raw = patatt.rfc2822_sign(PLAIN, config)
    hers = TrustAnchors(keyring=str(keyring))
    found = authenticate(raw, parse(raw), hers)
    assert (found.verdict, found.by) == (AuthVerdict.PASS, "patatt ed25519 dana@dev.example")
    assert found.covers("from", "subject", "message-id")
    assert not found.covers("in-reply-to")
    assert not found.covers("to")
    by_lee = patatt.rfc2822_sign(PLAIN, {**config, "identity": "lee@dev.example"})
    both = by_lee.replace(b"\n\n", raw[raw.index(b"\nX-Developer-Signature") : raw.index(b"\n\n")] + b"\n\n", 1)
    assert both.count(b"X-Developer-Signature") == 2
    assert verdict(both, hers) is AuthVerdict.NONE, "of two developers' signatures neither says who wrote it"
    changed = raw.replace(b"the lock", b"the luck")
    assert authenticate(changed, parse(changed), hers) == Trust(AuthVerdict.FAIL, "patatt ed25519 dana@dev.example")
    assert verdict(raw.replace(b"From: Dana Brook <dana@", b"From: Lee <lee@"), hers) is AuthVerdict.NONE
    assert verdict(raw, TrustAnchors(keyring=str(tmp_path / "none"))) is AuthVerdict.NONE
    assert verdict(raw.replace(b"a=ed25519", b"a=openpgp"), hers) is AuthVerdict.NONE  # would start another program
    assert verdict(raw.replace(b"; a=ed25519", b"; a=openpgp-sha256; a=ed25519"), hers) is AuthVerdict.NONE
    # git mailinfo takes a subject in the body for the header's: what she signed is not what we would read.
    other = raw.replace(b"Subject: Re: the report", b"Subject: unsubscribe")
    moved = other.replace(b"\n\nIt is", b"\n\nSubject: the report\n\nIt is")
    assert verdict(moved, hers) is not AuthVerdict.PASS
    # Nor are lines that it drops, brackets in the subject, and bytes that patatt drops.
    for mark in (b">From " + b"0" * 40 + b" Mon Sep 17 00:00:00 2001\n", b"[PATCH] x\n"):
        for end in (b"\r\r#lkp invalid\r\r\n", b"\n"):
            put = raw.replace(b"\n\nIt is", b"\n\n" + mark + b"Date: x" + end + b"\nIt is")
            assert verdict(put, hers) is not AuthVerdict.PASS
    led = raw.replace(b"Subject: Re: the report", b"Subject: Re: [3b1f0c9d2e: -8.8% regression] the report")
    assert verdict(led, hers) is AuthVerdict.PASS
    assert not authenticate(led, parse(led), hers).covers("subject")
    again = raw.replace(b"@dev.example>\nSubject", b"\xc3\xa9@dev.example> =?us-ascii?q??=\nSubject")
    assert again == raw or verdict(again, hers) is AuthVerdict.NONE


def test_an_openpgp_key_in_the_keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("gpg")
    home, keyring = tmp_path / "gnupg", tmp_path / "keys"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("GNUPGHOME", str(home))
    monkeypatch.setattr(patatt, "KEYCACHE", {})  # which has her other key from other tests
    gpg = ["gpg", "--batch", "--quiet", "--passphrase", ""]
    subprocess.run([*gpg, "--quick-generate-key", "dana@dev.example", "ed25519", "sign", "never"], check=True)
    key = subprocess.run([*gpg, "--export", "dana@dev.example"], check=True, capture_output=True).stdout
    config = {"signingkey": "openpgp:<dana@dev.example>", "identity": "dana@dev.example", "selector": "default"}
    raw = patatt.rfc2822_sign(PLAIN, config)
    hers = TrustAnchors(keyring=str(keyring))
    assert verdict(raw, hers) is AuthVerdict.NONE, "gpg's own keyring has the key, ours has not"
    folder = keyring / "openpgp" / "dev.example" / "dana"
    folder.mkdir(parents=True)
    (folder / "default").write_bytes(key)
    found = authenticate(raw, parse(raw), hers)
    assert (found.verdict, found.by) == (AuthVerdict.PASS, "patatt openpgp dana@dev.example")
    assert found.covers("from", "subject", "message-id")
    assert verdict(raw.replace(b"the lock", b"the luck"), hers) is not AuthVerdict.PASS
    assert verdict(raw.replace(b"From: Dana Brook <dana@", b"From: Lee <lee@"), hers) is AuthVerdict.NONE
    monkeypatch.setenv("PATH", str(tmp_path))
    assert verdict(raw, hers) is AuthVerdict.NONE, "without gpg it counts as unsigned"


@pytest.mark.parametrize(
    "writer",
    [
        b"A <attacker@dev.example> (<dana@dev.example>",
        b"A <attacker@dev.example> <dana@dev.example>",
        b"attacker@dev.example <dana@dev.example>",
        b'"A <dana@dev.example>',
    ],
)
def test_a_from_that_may_mean_two_people_is_proof_of_neither(writer: bytes) -> None:
    raw = GOOD + OUTSIDE + CLAIM + PLAIN.replace(b"Dana Brook <dana@dev.example>", writer)
    assert verdict(raw, SERVER) is not AuthVerdict.PASS


@pytest.mark.parametrize("writer", [b'"Dana @ Work" <dana@dev.example>', b"dana@dev.example <Dana@Dev.example>",
                                    b"dana@dev.example (Dana Brook)"])  # fmt: skip
def test_a_from_that_means_one_person_in_an_odd_way_is_proof(writer: bytes) -> None:
    raw = GOOD + OUTSIDE + CLAIM + PLAIN.replace(b"Dana Brook <dana@dev.example>", writer)
    assert verdict(raw, SERVER) is AuthVerdict.PASS


PROVEN, CONTRADICTED = Trust(AuthVerdict.PASS, "dkim x"), Trust(AuthVerdict.FAIL, "dkim x")


@pytest.mark.parametrize(
    ("policy", "trust", "role", "open_move", "close"),
    [
        ("open", UNPROVEN, Role.THIRD_PARTY, True, True),
        ("open", CONTRADICTED, Role.AUTHOR, True, True),
        ("verified", PROVEN, Role.AUTHOR, True, True),
        ("verified", UNPROVEN, Role.AUTHOR, True, False),
        ("verified", CONTRADICTED, Role.AUTHOR, False, False),
        ("maintainers", PROVEN, Role.MAINTAINER, True, True),
        ("maintainers", PROVEN, Role.THIRD_PARTY, False, False),
        ("maintainers", UNPROVEN, Role.AUTHOR, False, False),
        ("maintainers", PROVEN, None, False, False),
        ("verified", PROVEN, Role.THIRD_PARTY, True, False),  # proven, and nobody here
    ],
)
def test_the_policies(policy: str, trust: Trust, role: Role | None, open_move: bool, close: bool) -> None:
    assert permitted(Caused.MOVE, Standing(trust, role), policy) is open_move
    assert permitted(Caused.CLOSE, Standing(trust, role), policy) is close


NAMES = [b"DKIM-Signature", b"Authentication-Results", b"Received", b"X-Developer-Signature"]


def test_a_proven_address_under_a_borrowed_name_closes_nothing() -> None:
    borrowed = Standing(PROVEN, Role.AUTHOR, by_address=False)
    assert permitted(Caused.MOVE, borrowed, "verified")
    assert not permitted(Caused.COMMAND, borrowed, "verified")
    assert not permitted(Caused.MOVE, borrowed, "maintainers")


@given(st.binary(max_size=300), st.sampled_from(NAMES))
def test_junk_proves_nothing_and_raises_nothing(junk: bytes, name: bytes) -> None:
    raw = name + b": " + junk + b"\n" + PLAIN
    anchors = TrustAnchors(SERVER.servers, {}, "/nonexistent", lambda key: junk.decode("latin-1"))
    assert authenticate(raw, parse(raw), anchors).verdict is not AuthVerdict.PASS


# --- The other ways to read a body whose headers nobody signed: each that the bytes make plausible, and no other ---

HEAD = b"From: Dana <dana@dev.example>\nSubject: Re: the report\nMessage-ID: <a@dev.example>\n"
UNSIGNED_PLAIN = b"Content-Type: text/plain; charset=utf-8\n"
HTML = b"Content-Type: text/html; charset=utf-8\n"
QUOTED = b"Content-Transfer-Encoding: quoted-printable\n"
MIXED = b'Content-Type: multipart/mixed; boundary="b"\n'


def read(headers: bytes, body: bytes, head: bytes = HEAD) -> set[str] | None:
    """The texts of the other readings, without white space around them; None if there may be any."""
    raw = head + headers + b"\n" + body
    found = other_readings(raw, parse(raw))
    if found is None:
        return None
    return {" ".join(each.text.split()) for each in found}


PARTS = b"--b\nContent-Type: text/plain\n\nIt is the lock.\n--b\nContent-Type: text/plain\n\n#lkp invalid\n--b--\n"
ALTERNATIVES = PARTS.replace(b"--b\nContent-Type: text/plain\n\n#lkp", b"--b\nContent-Type: text/html\n\n<p>#lkp")


@pytest.mark.parametrize(
    ("headers", "body", "others"),
    [
        (UNSIGNED_PLAIN, b"It is the lock.\n", set()),
        (b"", b"It is the lock.\n", set()),
        # Markup is a text, and a text that begins with a tag may be markup.
        (UNSIGNED_PLAIN, b"<p>It is the lock.</p>\n", {"It is the lock."}),
        (HTML, b"<p>It is the lock.</p>\n", {"<p>It is the lock.</p>"}),
        (HTML, b" \n<!DOCTYPE html><p>It is the lock.</p>\n", {"<!DOCTYPE html><p>It is the lock.</p>"}),
        (UNSIGNED_PLAIN, b"a < b\n<p>It is the lock.</p>\n", None),  # it begins with words: nobody knows
        (UNSIGNED_PLAIN, b"<3 it\n", set()),
        # Quoted-printable: only what a program can have written so.
        (UNSIGNED_PLAIN, b"It is =\nthe lock=2E\n", {"It is the lock."}),
        (QUOTED + UNSIGNED_PLAIN, b"It is =\nthe lock=2E\n", {"It is = the lock=2E"}),
        (UNSIGNED_PLAIN, b"a == b, c=d\n", set()),
        (UNSIGNED_PLAIN, b"=41" + b" x" * 60 + b"\n", set()),  # words, on one line that is too long
        (UNSIGNED_PLAIN, "é =41\n".encode(), set()),  # not ASCII
        (UNSIGNED_PLAIN, b"=41" + b"x" * 75 + b"\n", {"A" + "x" * 75}),  # 78 characters
        (UNSIGNED_PLAIN, b"=41" + b"x" * 76 + b"\n", set()),
        (UNSIGNED_PLAIN, b"=3Cp>It is the lock.</p>\n", {"<p>It is the lock.</p>"}),
        (UNSIGNED_PLAIN, b"<p>It =41s</p>\n", {"It =41s", "<p>It As</p>", "It As"}),
        # base64, of lines of any length that programs write.
        (UNSIGNED_PLAIN, base64.encodebytes(b"It is the locks"), {"It is the locks"}),
        (UNSIGNED_PLAIN, base64.encodebytes(b"It is the lock, " * 12), {("It is the lock, " * 12).strip()}),
        (b"Content-Transfer-Encoding: base64\n" + UNSIGNED_PLAIN, b"SXQgaXMh\n", {"SXQgaXMh"}),
        (UNSIGNED_PLAIN, b"SXQg aXMh\n", set()),
        # A multipart: all of its parts, or one of them, whichever nobody meant; never half of it.
        (UNSIGNED_PLAIN, PARTS, {"It is the lock. #lkp invalid"}),
        (MIXED, PARTS, set()),
        (UNSIGNED_PLAIN, ALTERNATIVES, {"It is the lock. #lkp invalid", "It is the lock."}),
        (MIXED, ALTERNATIVES, {"It is the lock."}),
        (MIXED.replace(b"mixed", b"alternative"), ALTERNATIVES, {"It is the lock. #lkp invalid"}),
        (UNSIGNED_PLAIN, b"This is a multi-part message in MIME format.\n" + PARTS, {"It is the lock. #lkp invalid"}),
        (UNSIGNED_PLAIN, PARTS.replace(b"--b--", b""), set()),  # it does not end
        (UNSIGNED_PLAIN, b"Words.\n" + PARTS, None),
        (UNSIGNED_PLAIN, b"--\nDana\n", set()),  # a signature
    ],
)  # fmt: skip
def test_the_plausible_readings(headers: bytes, body: bytes, others: set[str] | None) -> None:
    assert read(headers, body) == others


def test_the_lines_may_end_in_crlf_and_a_mailbox_may_stand_above() -> None:
    body = b"<p>It is the lock.</p>\n\n<p>Two.</p>\n"
    raw = (HEAD + UNSIGNED_PLAIN + b"\n" + body).replace(b"\n", b"\r\n")
    for each in (raw, b"From dana Wed Mar 11 10:15:00 2026\r\n" + raw):
        found = other_readings(each, parse(each))
        assert found is not None
        assert [" ".join(one.text.split()) for one in found] == ["It is the lock. Two."]


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Type: text/html;\n\tcharset=utf-8\n",
        b"Content-Type: text/html;\n charset=utf-8\nContent-Language: en\n",
        b"content-type : text/html\nMIME-Version: 1.0\n",
        b"Content-Disposition: inline\nContent-Type: text/html\n",
    ],
)
def test_none_of_the_headers_of_a_body_is_kept_and_every_other_is(headers: bytes) -> None:
    head = HEAD.replace(b"Subject: Re: the report", headers + b"Subject: Re:\n\tthe report")
    raw = head + b"\n<p>It is the lock.</p>\n"
    found = other_readings(raw, parse(raw))
    assert found is not None
    assert [" ".join(each.text.split()) for each in found] == ["<p>It is the lock.</p>"]
    assert (found[0].subject, found[0].message_id) == ("Re: the report", "a@dev.example")
    assert (found[0].author.name, found[0].author.email) == ("Dana", "dana@dev.example")
    first, subject, rest = HEAD.partition(b"Subject: Re: the report\n")
    below = first + rest + subject + headers + b"\n<p>It is the lock.</p>\n"
    (other,) = other_readings(below, parse(below)) or ()
    assert other.subject == "Re: the report"


@pytest.mark.parametrize(
    ("body", "known"),
    [
        ("Écoute.\n".encode(), True),
        ("<b>é</b>\n".encode("iso-8859-1"), False),
        ("Мал пишет:\n".encode("koi8-r"), False),
        ("Mal 写道：\n".encode("gb2312"), False),
        (b"=EA =\n=3D\n", False),  # the same, encoded
        ("Malさんのメール：\n".encode("iso-2022-jp"), None),  # in ASCII alone
        ("Mal 写道：\n".encode("hz"), None),
    ],
)
@pytest.mark.parametrize("charset", ["us-ascii", "windows-1252", "iso-8859-1", "utf-16", "cp437"])
def test_of_another_charset_only_the_header_said_which(charset: str, body: bytes, known: bool | None) -> None:
    """Nobody signed it: the mail is read as ASCII or UTF-8, and if it is neither, that is said."""
    raw = HEAD + f"Content-Type: text/plain; charset={charset}\n".encode() + b"\n" + body
    found = other_readings(raw, parse(raw))
    if known is None:
        assert found is None
    else:
        assert found is not None
        assert any(authentication.UNKNOWN_CHARSET in one.problems for one in found) is not known


@pytest.mark.parametrize(
    ("boundary", "others"),
    [("b", set()), ("-- On Wed, 11 Mar 2026 Mal wrote ----", None), ("c", None)],
)
def test_no_line_of_the_writer_is_made_a_boundary(boundary: str, others: set[str] | None) -> None:
    """Above the first boundary nothing is read: what she wrote there would be lost."""
    parts = PARTS if boundary != "-- On Wed, 11 Mar 2026 Mal wrote ----" else f"No.\n\n--{boundary}\n\n#x\n".encode()
    assert read(f'Content-Type: multipart/mixed; boundary="{boundary}"\n'.encode(), parts) == others


def test_a_mail_that_is_too_long_is_not_tried() -> None:
    raw = HEAD + b"\n" + b"<p>word</p>\n"
    longest = raw + b" " * (authentication._MOST - len(raw))
    assert other_readings(longest, parse(longest)) is not None
    assert other_readings(longest + b" ", parse(longest)) is None


# --- The cache of DKIM keys: known keys are not looked up again, and DNS is only used if enabled ---

MAIL = (
    b"Received: x\r\nDKIM-Signature: v=1; a=rsa-sha256; d=Dev.Example;\r\n\ts=s1; h=from;\r\n b=abc\r\n"
    b"From: a@dev.example\r\n\r\nhi\r\n"
)


@pytest.fixture
def queried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []

    def record(name: str) -> str | None:
        names.append(name)
        return {"s1._domainkey.dev.example": "v=DKIM1; p=x", "none._domainkey.dev.example": ""}.get(name)

    monkeypatch.setattr(config, "key_in_dns", record)
    return names


@pytest.mark.django_db
def test_nobody_is_asked_by_default(queried: list[str], now: datetime) -> None:
    assert KeyCache().warm([MAIL], now) == 0
    assert queried == []


@pytest.mark.django_db
def test_a_key_is_asked_for_once_and_kept(queried: list[str], now: datetime) -> None:
    keys = KeyCache(ask_dns=True)
    assert (keys.warm([MAIL, MAIL], now), keys.warm([MAIL], now)) == (1, 0)
    assert keys.key("s1._domainkey.dev.example") == "v=DKIM1; p=x"
    assert keys.signs("dev.example")
    assert KeyCache(ask_dns=True).warm([MAIL], now) == 0
    assert queried == ["s1._domainkey.dev.example"]


def test_a_record_from_dns_can_be_stored_whatever_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = SimpleNamespace(strings=(b"v=DKIM1; p=\0", b"\xff" * 20_000))
    monkeypatch.setattr("dns.resolver.resolve", lambda *arguments, **options: [answer])
    record = config.key_in_dns("s1._domainkey.dev.example")
    assert record is not None
    assert record.startswith("v=DKIM1; p=\ufffd")
    assert len(record) == 10_000


@pytest.mark.django_db
def test_what_dns_cannot_tell_is_asked_again_and_what_is_not_there_after_a_while(
    queried: list[str], now: datetime
) -> None:
    unknown, none = MAIL.replace(b"s=s1", b"s=s2"), MAIL.replace(b"s=s1", b"s=none")
    keys = KeyCache(ask_dns=True)
    keys.warm([unknown, none], now)
    keys.warm([unknown, none], now)
    assert queried == ["s2._domainkey.dev.example", "none._domainkey.dev.example", "s2._domainkey.dev.example"]
    assert keys.key("none._domainkey.dev.example") == ""
    assert not keys.signs("dev.example")
    ModelsSigningKey.objects.update(fetched_at=now - timedelta(days=4000))
    assert KeyCache(ask_dns=True).warm([none], now) == 1


# --- What would take long, and what is the same mail ---


@pytest.mark.parametrize(
    ("raw", "costly"),
    [
        (b"Subject: a\n" + b" \n" * 10 + b"\nbody", False),
        (b"Subject: a\n" + b" \n" * 250 + b"\nbody", True),
        (b" " * 250 + b"Subject: a\n\nbody", True),
        (b"Subject: a" + b"\t" * 250, True),  # a head alone
        (b"Subject: a\n\nbody\n" + b" \n" * 250, False),
        (b"Subject: a\n\nbody\n\n" + b" \n" * 250, False),  # of two empty lines the first ends the head
        (b"Subject: a\r\n\r\n" + b" " * 250 + b"x", False),
        (b"Subject: a\r\n" + b" \r\n" * 250 + b"\r\nbody", True),
        (b"Subject: a\n\n" + b" " * 4000 + b"x", False),
        (b"Subject: a\n\n" + (b" " * 4000 + b"x") * 2, True),  # each takes the square of its length
        (b"Subject: a\n\n" + (b" " * 100 + b"x") * 1500, False),
    ],
)
def test_runs_of_blanks_that_dkimpy_would_take_long_for(raw: bytes, costly: bool) -> None:
    assert authentication._has_costly_blanks(raw) is costly


def test_many_runs_that_are_just_short_enough_are_looked_at_in_time() -> None:
    started = time.process_time()
    assert not authentication._has_costly_blanks(b"Subject: a" + (b"\r\n " * 199 + b"x") * 1000)
    assert time.process_time() - started < 1


def test_a_mail_is_known_again_by_its_date_and_its_words() -> None:
    head = [("subject", "a"), ("date", "Mon, 2 Mar 2026 12:00:00 +0000")]
    digest = authentication._digest(b"Date: x\n\nIt is the lock.\n\n Thanks\n", head)
    same = (b"X: y\r\n\r\nIt is the lock.\r\n\r\n  Thanks \r\n", b"\n\nIt  is the lock. Thanks")
    assert {authentication._digest(raw, head) for raw in same} == {digest}
    assert authentication._digest(b"Date: x\n\nThanks\n", head) != digest
    assert authentication._digest(b"Date: x\n\nIt is the lock.\n\n Thanks\n", [("date", "another")]) != digest
    assert authentication._digest(b"\n\na", []) == authentication._digest(b"\n\na", [("subject", "b")])
    assert authentication._digest(b"\n\na", [("date", "\udc80")])
