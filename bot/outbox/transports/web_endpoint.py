"""b4's web endpoint, for labs whose network blocks SMTP: `b4+https://lkml.kernel.org/_b4_submit`.

It takes `{"action": "receive", "messages": […]}` (b4: send_mail), requires the patatt signature of a registered
developer, and mails to all addresses in To and Cc: we can't choose the envelope.
"""

from __future__ import annotations

from collections.abc import Callable
from email import message_from_bytes, policy
from email.utils import getaddresses
from typing import Any

import requests

from bot.outbox.transports.port import Envelope, SendOutcome, SendStatus, text_of


class WebTransport:
    """One session for many mails. `timeout`: seconds for one response."""

    def __init__(self, url: str, timeout: float = 60.0) -> None:
        self.url, self.timeout = url, timeout
        self._session = requests.Session()

    def close(self) -> None:
        """Close the session."""
        self._session.close()

    def send(self, envelope: Envelope, confirm: Callable[[], bool]) -> SendOutcome:
        """See `port.Transport`."""
        if reason := _rejection(envelope):
            return SendOutcome(SendStatus.REFUSED, reason)
        if not confirm():
            return SendOutcome(SendStatus.NOT_NOW)
        payload = {"action": "receive", "messages": [envelope.raw.replace(b"\r\n", b"\n").decode("utf-8", "replace")]}
        try:
            answer = self._session.post(self.url, json=payload, timeout=self.timeout, allow_redirects=False)
        except requests.exceptions.ConnectTimeout as error:
            return SendOutcome(SendStatus.NO_SERVER, f"{self.url}: {text_of(str(error))}")
        except requests.exceptions.ConnectionError as error:
            return self._broken(error)
        except requests.exceptions.RequestException as error:
            return SendOutcome(SendStatus.IN_DOUBT, f"{self.url}: {text_of(str(error))}")
        return _read(answer)

    def _broken(self, error: requests.exceptions.ConnectionError) -> SendOutcome:
        """Return the outcome of a connection error: in doubt, unless the connection was never established."""
        reason = getattr(error.args[0], "reason", None) if error.args else None
        unproven = "CERTIFICATE_VERIFY_FAILED" in str(error)
        never = unproven or type(reason).__name__ in ("NewConnectionError", "NameResolutionError")
        return SendOutcome(SendStatus.NO_SERVER if never else SendStatus.IN_DOUBT, f"{self.url}: {text_of(str(error))}")


def _rejection(envelope: Envelope) -> str:
    """Return why the endpoint can't send an envelope, or "": it must be signed, and be for all of To and Cc."""
    head = message_from_bytes(envelope.raw.partition(b"\r\n\r\n")[0] + b"\r\n\r\n", policy=policy.compat32)
    if "X-Developer-Signature" not in head:
        return "the web endpoint accepts signed mail only: set PERFWORK_PATATT_KEY"
    named = {address.lower() for _, address in getaddresses([*head.get_all("To", []), *head.get_all("Cc", [])])}
    if left_out := sorted(named - {each.lower() for each in envelope.recipients}):
        return f"the web endpoint sends to everyone in To and Cc, and {left_out[0]} must not get it: compose it again"
    return ""


def _read(answer: requests.Response) -> SendOutcome:
    try:
        payload: Any = answer.json()
    except ValueError:
        payload = None
    result = payload.get("result") if isinstance(payload, dict) else None
    if answer.status_code == 200 and result == "success":
        return SendOutcome(SendStatus.SENT, text_of(str(payload.get("message", "success"))))
    if result == "error":  # b4's server reports this before it mails anything
        return SendOutcome(SendStatus.REFUSED, f"{answer.status_code} {text_of(str(payload.get('message', 'error')))}")
    if answer.status_code in (401, 403, 404):  # a wrong key or address: no mail would be taken
        return SendOutcome(SendStatus.NO_SERVER, f"{answer.status_code} {text_of(answer.reason or '')}")
    if answer.status_code in (429, 503):
        return SendOutcome(SendStatus.LATER, f"{answer.status_code} {text_of(answer.reason or '')}")
    if 300 <= answer.status_code < 500:
        return SendOutcome(SendStatus.REFUSED, f"{answer.status_code} {text_of(answer.reason or '')}")
    return SendOutcome(
        SendStatus.IN_DOUBT, f"the web endpoint answered {answer.status_code}: {text_of(answer.text[:300])}"
    )
