"""The first look at an epoch's mails: the first ones here, the rest in a process of its own, ahead of the filing.

git unpacks on one core. Looking at the bytes takes about as long again, and so does filing where robots post: done by
one process they would wait for each other. What is found does not depend on who looks, since what is tracked is asked
only here, mail by mail, in the order of the archive (`Prefilter.judge`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from queue import Empty, Queue
from threading import Thread
from typing import Any

from bot.archives.prefilter import Look, Passes, Prefilter
from bot.archives.sources.public_inbox import EpochSource, widen
from bot.archives.sources.raw import RawMail
from bot.errors import Unreadable
from bot.runtime.processes import fork, kill

FEW = 500  # mails that are looked at here: a process costs more
_AT_ONCE = 250  # mails sent at once
_MOST_BYTES = 1 << 20  # of these mails
_MOST_HELD = 16 << 20  # with those that are not sent
_AHEAD = 32  # slices that wait here at most


@dataclass(frozen=True, slots=True)
class Looked:
    """A mail of an epoch, and what the prefilter sees in it.

    `raw` is None where the other process, which doesn't learn what is filed meanwhile, saw no reason to send it: if
    there is one, it is read again from git. The last mail is always sent. `size`: its length in bytes.
    """

    position: str
    read_to: str | None
    size: int
    raw: bytes | None
    look: Look


_Sent = list[tuple[Any, ...]]  # the fields of `Looked`, and of its look


def looked_at(source: EpochSource, cursor: str, goal: str, prefilter: Prefilter) -> Iterator[Looked | None]:
    """Yield the mails after `cursor` up to `goal`, oldest first, each with what the prefilter sees in it.

    Yields None while it has to wait for more: the time to file what passed. Raises Unreadable as the source does, and
    if the other process was killed.
    """
    last = None
    with closing(source.mails(cursor, goal)) as mails:
        for mail in islice(mails, FEW):
            yield _looked(mail, prefilter)
            last = mail
        # Where a mail could not be read, only the end of the pass says so.
        if last is None or last.read_to != last.position or _is_alone():
            yield from (_looked(mail, prefilter) for mail in mails)
            return
        if next(mails, None) is None:
            return
    yield from _from_process(source, last.position, goal, prefilter)


def _looked(mail: RawMail, prefilter: Prefilter) -> Looked:
    return Looked(mail.position, mail.read_to, len(mail.raw), mail.raw, prefilter.look(mail.raw))


def _is_alone() -> bool:
    """Whether there is one core only, on which a second process would just be in the way."""
    return len(os.sched_getaffinity(0)) < 2


def _from_process(source: EpochSource, since: str, goal: str, prefilter: Prefilter) -> Iterator[Looked | None]:
    """Yield what a forked process reads and looks at; it ends with this one, and when the reader stops."""
    receiver, sender = Pipe(duplex=False)

    def work() -> None:
        receiver.close()  # so that the end of the reader is the end of the pipe
        _send(sender, source, since, goal, prefilter)

    pid = fork(work)  # which has all code loaded, and the patterns compiled
    sender.close()  # so that the end of the process is the end of the pipe
    arrived: Queue[_Sent | Exception | None] = Queue(_AHEAD)
    receiving = Thread(target=_receive, args=(receiver, arrived), daemon=True)  # while this one files
    receiving.start()
    try:
        while True:
            if arrived.empty():
                yield None
            sent = arrived.get()
            if isinstance(sent, EOFError):
                raise Unreadable(f"{source.epoch}: the process that read it was killed; the next run resumes")
            if isinstance(sent, Exception):
                raise sent
            if sent is None:
                return
            for position, read_to, size, raw, names, own, ours, may_be_report in sent:
                yield Looked(position, read_to, size, raw, Look(names, own, ours, may_be_report))
    finally:
        kill(pid)
        while receiving.is_alive():
            with suppress(Empty):
                arrived.get(timeout=0.01)
        receiver.close()


def _receive(receiver: Connection, arrived: Queue[_Sent | Exception | None]) -> None:
    """Take slices from the pipe until the last one, an error, or the end of the process that sends them."""
    sent: _Sent | Exception | None = []
    while isinstance(sent, list):
        try:
            sent = receiver.recv()
        except (EOFError, OSError):
            sent = EOFError()
        arrived.put(sent)


def _send(sender: Connection, source: EpochSource, since: str, goal: str, prefilter: Prefilter) -> None:
    """Look at the mails, and send them in slices, then None, or the error that ended it. Uses no database."""
    widen(sender.fileno())
    end: Exception | None = None
    mails: list[Looked] = []
    passed: list[bool] = []
    size = held = 0  # bytes to send, and in memory
    try:
        for mail in source.mails_after(since, goal):
            mails.append(_looked(mail, prefilter))
            passed.append(prefilter.judge(mails[-1].look) is not Passes.NOT)
            size += len(mail.raw) if passed[-1] else 0
            held += len(mail.raw)
            if len(mails) >= _AT_ONCE or size >= _MOST_BYTES or held >= _MOST_HELD:
                sender.send(_to_send(mails, passed))
                mails, passed, size, held = [], [], 0, 0
    except (Unreadable, OSError) as error:
        end = error
    sender.send(_to_send(mails, passed))  # what was read before an error, too
    sender.send(end)


def _to_send(mails: Sequence[Looked], passed: Sequence[bool]) -> _Sent:
    """Return the fields of mails, without the bytes of those that did not pass, but for the last one."""
    passed = [*passed[:-1], *(True for _ in mails[-1:])]
    return [
        (each.position, each.read_to, each.size, each.raw if sent else None, *_fields(each.look))
        for each, sent in zip(mails, passed, strict=True)
    ]


def _fields(look: Look) -> tuple[list[bytes], list[bytes], bool, bool]:
    return look.names, look.own, look.ours, look.may_be_report
