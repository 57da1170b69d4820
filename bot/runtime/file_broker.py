"""The broker of an installation without servers: kombu's file-system queue, safe for several processes."""

from __future__ import annotations

import fcntl
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty
from time import monotonic_ns
from typing import Any

from kombu.transport import filesystem
from kombu.utils.json import dumps, loads


class Channel(filesystem.Channel):
    """A channel whose files appear whole.

    kombu opens a message's file, then locks and fills it, and takes one without asking for the lock: a second process
    may take it while it is empty, and its worker ends with a JSONDecodeError. The tables of exchanges have the same
    gap, and stay empty for good when their writer is killed in it. kombu takes a message by moving it to the folder for
    temporary files; where that is on another file system, the move is a copy, and two processes make it at once.
    """

    def _put(self, queue: str, payload: dict[str, Any], **kwargs: Any) -> None:  # type: ignore[override]  # as kombu does
        folder, name = Path(self.data_folder_out), f"{monotonic_ns() // 1_000_000}_{uuid.uuid4()}"
        part = folder / f"{name}.part"  # a name that no queue has
        part.write_text(dumps(payload))
        part.replace(folder / f"{name}.{queue}.msg")

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        for file in sorted(Path(self.data_folder_in).iterdir()):
            if file.name.partition(".")[2] != f"{queue}.msg":
                continue
            try:
                message = file.read_text()
                file.unlink()  # succeeds in one process only, and the message is its own
            except FileNotFoundError:
                continue
            return loads(message)
        raise Empty

    def get_table(self, exchange: str) -> Any:
        return self._whole(exchange, super().get_table)

    def _queue_bind(self, exchange: str, *args: Any) -> None:
        self._whole(exchange, super()._queue_bind, *args)

    def _delete(self, queue: str, exchange: str, *args: Any, **kwargs: Any) -> None:
        self._whole(exchange, lambda _: super(Channel, self)._delete(queue, exchange, *args, **kwargs))

    def _whole(self, exchange: str, call: Callable[..., Any], *args: Any) -> Any:
        """Call with the table of the exchange to ourselves, and without one that a killed process left half written."""
        with self._locked():
            file: Path = self._exchange_file(exchange)  # type: ignore[attr-defined]  # not in the stubs
            try:
                loads(file.read_text())
            except FileNotFoundError:
                pass
            except ValueError:
                file.unlink()
            return call(exchange, *args)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (self.control_folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # ends with the file, also when the process is killed
            yield


class Transport(filesystem.Transport):
    """kombu's file-system transport over our channel (the setting `CELERY_BROKER_TRANSPORT`)."""

    Channel = Channel
