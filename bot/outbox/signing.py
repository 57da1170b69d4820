"""Signatures over a mail as it leaves: DKIM (RFC 6376) of our domain, and a developer's by patatt.

Signed at the last moment, so that mail which waited is signed with the key of today.
"""

from __future__ import annotations

from dataclasses import dataclass

import dkim
import patatt

# What a list may change or replace (List-*, Sender) is not signed; what says who wrote what to whom is.
_SIGNED = (
    *("from", "reply-to", "to", "cc", "subject", "date", "message-id", "in-reply-to", "references"),
    *("mime-version", "content-type", "content-transfer-encoding", "auto-submitted", "x-perfwork-report"),
)


class Unsigned(Exception):  # noqa: N818
    """A mail that could not be signed; the words say why."""


@dataclass(frozen=True, slots=True)
class DkimKey:
    """A private key in PEM (RSA), or the base64 of an Ed25519 seed, as `dknewkey` of dkimpy writes them."""

    domain: str
    selector: str
    private: bytes

    @property
    def algorithm(self) -> bytes:
        return b"rsa-sha256" if self.private.lstrip().startswith(b"-----BEGIN") else b"ed25519-sha256"

    def sign(self, raw: bytes) -> bytes:
        present = {line.partition(b":")[0].strip().lower() for line in raw.partition(b"\r\n\r\n")[0].split(b"\r\n")}
        headers = [name.encode() for name in _SIGNED if name.encode() in present]
        signature = dkim.sign(
            raw,
            self.selector.encode(),
            self.domain.encode(),
            self.private.strip(),
            canonicalize=(b"relaxed", b"relaxed"),
            signature_algorithm=self.algorithm,
            include_headers=headers,
        )
        return bytes(signature) + raw


@dataclass(frozen=True, slots=True)
class PatattKey:
    """A private key as `patatt genkey` writes it: the base64 of an Ed25519 seed."""

    identity: str
    selector: str
    private: str

    def sign(self, raw: bytes) -> bytes:
        message = patatt.PatattMessage(raw)
        message.sign("ed25519", self.private, identity=self.identity, selector=self.selector or None)
        return bytes(message.as_bytes())


@dataclass(frozen=True, slots=True)
class Signing:
    """The keys that are set. A developer's signature comes first: DKIM is what the mail server of a domain does."""

    dkim: DkimKey | None = None
    patatt: PatattKey | None = None

    def __bool__(self) -> bool:
        return bool(self.dkim or self.patatt)

    def sign(self, raw: bytes) -> bytes:
        """The mail with its signatures on top; Unsigned where a key does not work."""
        try:
            for key in (self.patatt, self.dkim):
                raw = key.sign(raw) if key else raw
        except Exception as error:  # whatever the libraries make of a key that is none
            raise Unsigned(f"could not be signed: {type(error).__name__}: {error}") from error
        return raw
