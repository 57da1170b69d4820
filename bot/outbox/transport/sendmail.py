"""A sendmail program on this machine, as Postfix, Exim, msmtp and others bring it: `sendmail:///usr/sbin/sendmail`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from bot.outbox.transport.port import Fate, Letter, Outcome, text_of

_TRY_AGAIN = frozenset({os.EX_TEMPFAIL, os.EX_UNAVAILABLE, os.EX_OSERR, os.EX_IOERR})  # sysexits.h


@dataclass(frozen=True, slots=True)
class SendmailTransport:
    """`timeout`: seconds that the program may take for one mail."""

    program: str
    timeout: float = 60.0

    def close(self) -> None:
        """Nothing is open."""

    def send(self, letter: Letter, last_word: Callable[[], bool]) -> Outcome:
        """See `port.Transport`. The program takes the mail when its input ends: that is the last step."""
        command = [self.program, "-oi", "-f", letter.sender, "--", *letter.recipients]
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, close_fds=True
            )
        except OSError as error:
            return Outcome(Fate.NO_SERVER, f"{self.program}: {error.strerror}")
        if not last_word():  # it has not read a byte
            process.kill()
            process.communicate()
            return Outcome(Fate.NOT_NOW)
        try:
            _, words = process.communicate(letter.raw.replace(b"\r\n", b"\n"), self.timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return Outcome(Fate.DOUBT, f"{self.program} did not end within {self.timeout:.0f} s")
        if process.returncode == 0:
            return Outcome(Fate.SENT, text_of(words))
        said = f"{self.program} ended with {process.returncode}: {text_of(words)}"
        if process.returncode < 0:  # a signal: nobody knows how far it was
            return Outcome(Fate.DOUBT, said)
        return Outcome(Fate.LATER if process.returncode in _TRY_AGAIN else Fate.REFUSED, said)
