"""A list archive in public-inbox v2 format, written mail by mail like a list server does."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

from bot.archives.sources.public_inbox import read_epoch
from bot.git import repository as git
from bot.mail.message import parse


class DemoInbox:
    """Files mail in `path`/git/0.git; like public-inbox, it files each Message-ID once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.epoch = path / "git" / "0.git"
        self._lock = threading.Lock()
        if not git.is_repository(self.epoch):
            self.epoch.mkdir(parents=True)
            self._git("init", "--quiet", "--bare", "--initial-branch=master")
        self._known = {parse(raw).message_id for raw in self._mails()}

    def add(self, raw: bytes) -> bool:
        """File one mail; return False if its Message-ID is already there."""
        mail = parse(raw)
        with self._lock:
            if mail.message_id and mail.message_id in self._known:
                return False
            self._known.add(mail.message_id)
            self._commit(raw, mail.subject or "(no subject)", "m")
        return True

    def _commit(self, raw: bytes, subject: str, name: str) -> None:
        blob = self._git("hash-object", "-w", "--stdin", stdin=raw)
        tree = self._git("mktree", stdin=f"100644 blob {blob}\t{name}\n".encode())
        head = self._git("for-each-ref", "--format=%(objectname)", "refs/heads/master")
        commit = self._git("commit-tree", tree, *(("-p", head) if head else ()), stdin=subject.encode())
        self._git("update-ref", "refs/heads/master", commit)

    def _mails(self) -> list[bytes]:
        head = self._git("for-each-ref", "--format=%(objectname)", "refs/heads/master")
        return [mail.raw for mail in read_epoch(self.epoch)] if head else []

    def _git(self, *arguments: str, stdin: bytes = b"") -> str:
        who = {"GIT_AUTHOR_NAME": "list", "GIT_AUTHOR_EMAIL": "list@lists.example"}
        who |= {"GIT_COMMITTER_NAME": "list", "GIT_COMMITTER_EMAIL": "list@lists.example"}
        who |= dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), "1600000000 +0000")  # the same in every run
        done = subprocess.run(
            git.command(self.epoch, *arguments),
            input=stdin,
            capture_output=True,
            env={**git.ENVIRONMENT, **who},
            check=True,
        )
        return done.stdout.decode().strip()
