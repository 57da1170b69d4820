"""Sign outgoing mail: DKIM (RFC 6376) for our domain, and a developer signature (patatt).

Mail is signed when it is sent, so that mail which waited gets a signature of the current key.
"""

from __future__ import annotations

from dataclasses import dataclass

import patatt

# Headers that lists change or replace (List-*, Sender) are not signed.
_SIGNED = (
    *("from", "reply-to", "to", "cc", "subject", "date", "message-id", "in-reply-to", "references"),
    *("mime-version", "content-type", "content-transfer-encoding", "auto-submitted", "x-perfwork-report"),
)


class Unsigned(Exception):  # noqa: N818
    """A mail could not be signed; the message says why."""


@dataclass(frozen=True, slots=True)
class DkimKey:
    """A private key: PEM (RSA) or a base64 Ed25519 seed, as written by `dknewkey` of dkimpy."""

    domain: str
    selector: str
    private: bytes

    @property
    def algorithm(self) -> bytes:
        return b"rsa-sha256" if self.private.lstrip().startswith(b"-----BEGIN") else b"ed25519-sha256"

    def sign(self, raw: bytes) -> bytes:
        import dkim  # with its resolver it takes 70 ms to import, and few commands sign

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
    """A private key as written by `patatt genkey`: a base64 Ed25519 seed."""

    identity: str
    selector: str
    private: str

    def sign(self, raw: bytes) -> bytes:
        message = patatt.PatattMessage(raw)
        message.sign("ed25519", self.private, identity=self.identity, selector=self.selector or None)
        return bytes(message.as_bytes())


@dataclass(frozen=True, slots=True)
class Signing:
    """The configured keys. The developer signature is made first, since DKIM is normally added by the mail server."""

    dkim: DkimKey | None = None
    patatt: PatattKey | None = None

    def __bool__(self) -> bool:
        return bool(self.dkim or self.patatt)

    def sign(self, raw: bytes) -> bytes:
        """Return the mail with its signatures on top; raise Unsigned if a key does not work."""
        try:
            for key in (self.patatt, self.dkim):
                raw = key.sign(raw) if key else raw
        except Exception as error:  # the libraries raise all sorts of errors for an invalid key
            raise Unsigned(f"could not be signed: {type(error).__name__}: {error}") from error
        return raw
