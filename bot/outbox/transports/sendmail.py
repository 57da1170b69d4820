"""A local sendmail program, as installed by Postfix, Exim, msmtp and others: `sendmail:///usr/sbin/sendmail`."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO

from bot.outbox.transports.port import Envelope, SendOutcome, SendStatus, text_of

_TRY_AGAIN = frozenset({os.EX_UNAVAILABLE})
_SETTINGS = frozenset({os.EX_NOPERM, os.EX_CONFIG})  # sysexits.h: the program is set wrongly, so no mail would be taken
_UNSURE = frozenset({os.EX_TEMPFAIL, os.EX_OSERR, os.EX_IOERR})


@dataclass(frozen=True, slots=True)
class SendmailTransport:
    """`timeout`: seconds that the program may take per mail."""

    program: str
    timeout: float = 60.0

    def close(self) -> None:
        """Nothing is open."""

    def send(self, envelope: Envelope, confirm: Callable[[], bool]) -> SendOutcome:
        """See `port.Transport`. The last step is to start the program."""
        if shutil.which(self.program) is None:
            return SendOutcome(SendStatus.NO_SERVER, f"{self.program}: no such program")
        with tempfile.TemporaryFile() as content:  # so that it reads the whole mail even if we die
            content.write(envelope.raw.replace(b"\r\n", b"\n"))
            content.seek(0)
            return self._run(content, envelope) if confirm() else SendOutcome(SendStatus.NOT_NOW)

    def _run(self, content: IO[bytes], envelope: Envelope) -> SendOutcome:
        command = [self.program, "-oi", "-f", envelope.sender, "--", *envelope.recipients]
        with tempfile.TemporaryFile() as output:
            try:
                process = subprocess.Popen(
                    command, stdin=content, stdout=subprocess.DEVNULL, stderr=output, start_new_session=True
                )
            except OSError as error:
                return SendOutcome(SendStatus.NO_SERVER, f"{self.program}: {error.strerror}")
            try:
                process.wait(self.timeout)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return SendOutcome(SendStatus.IN_DOUBT, f"{self.program} did not finish within {self.timeout:.0f} s")
            output.seek(0)
            return self._outcome(process.returncode, output.read(4000))

    def _outcome(self, code: int, output: bytes) -> SendOutcome:
        """Map an exit code of sysexits.h. sendmail(8) also returns 75 for queued mail, so that 75 leaves doubt."""
        if code == 0:
            return SendOutcome(SendStatus.SENT, text_of(output))
        reason = f"{self.program} exited with {code}: {text_of(output)}"
        if code < 0 or code in _UNSURE:
            return SendOutcome(SendStatus.IN_DOUBT, reason)
        if code in _SETTINGS:
            return SendOutcome(SendStatus.NO_SERVER, reason)
        return SendOutcome(SendStatus.LATER if code in _TRY_AGAIN else SendStatus.REFUSED, reason)
