"""A sendmail program on this machine, as Postfix, Exim, msmtp and others bring it: `sendmail:///usr/sbin/sendmail`."""

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
_UNSURE = frozenset({os.EX_TEMPFAIL, os.EX_OSERR, os.EX_IOERR})


@dataclass(frozen=True, slots=True)
class SendmailTransport:
    """`timeout`: seconds that the program may take for one mail."""

    program: str
    timeout: float = 60.0

    def close(self) -> None:
        """Nothing is open."""

    def send(self, letter: Envelope, last_word: Callable[[], bool]) -> SendOutcome:
        """See `port.Transport`. Once the program runs, the mail is its own: that is the last step."""
        if shutil.which(self.program) is None:
            return SendOutcome(SendStatus.NO_SERVER, f"{self.program}: there is no such program")
        with tempfile.TemporaryFile() as whole:  # so that it reads the whole mail, or none, whenever we die
            whole.write(letter.raw.replace(b"\r\n", b"\n"))
            whole.seek(0)
            return self._run(whole, letter) if last_word() else SendOutcome(SendStatus.NOT_NOW)

    def _run(self, whole: IO[bytes], letter: Envelope) -> SendOutcome:
        command = [self.program, "-oi", "-f", letter.sender, "--", *letter.recipients]
        with tempfile.TemporaryFile() as said:
            try:
                process = subprocess.Popen(
                    command, stdin=whole, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True
                )
            except OSError as error:
                return SendOutcome(SendStatus.NO_SERVER, f"{self.program}: {error.strerror}")
            try:
                process.wait(self.timeout)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return SendOutcome(SendStatus.DOUBT, f"{self.program} did not end within {self.timeout:.0f} s")
            said.seek(0)
            return self._outcome(process.returncode, said.read(4000))

    def _outcome(self, code: int, words: bytes) -> SendOutcome:
        """What sysexits.h says; sendmail(8) says 75 of mail that it has queued, too, so that it proves nothing."""
        if code == 0:
            return SendOutcome(SendStatus.SENT, text_of(words))
        said = f"{self.program} ended with {code}: {text_of(words)}"
        if code < 0 or code in _UNSURE:
            return SendOutcome(SendStatus.DOUBT, said)
        return SendOutcome(SendStatus.LATER if code in _TRY_AGAIN else SendStatus.REFUSED, said)
