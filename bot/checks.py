"""What `check` knows of the settings: what is unknown, can't be parsed, does not exist or contradicts itself.

Errors stop the commands that need the settings (those with the tag `perfwork`); a path that is missing today may be
back tomorrow and is a warning. `check --database default` also looks at the mail that came in, and `check --connect`
at whether the servers answer that the settings name.
"""

import difflib
import os
import re
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as Notice
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError

from bot.git.repository import Unreadable, hidden_part

_ADDRESS = re.compile(r"[^@\s<>]+@[^@\s<>]+\.[^@\s<>]+|[^@\s<>]+@localhost")
_NEWEST, _HEAD = 1000, 16_000  # mails, and bytes of each
_PATIENCE = 10  # seconds
_OPENPGP = re.compile(rb"^X-Developer-Signature:[^\n]{0,200}\ba=openpgp", re.I | re.M)
# Names that the settings turn into others, and those of scripts, tests and benchmarks.
_ELSEWHERE = {
    "PERFWORK_ENV", "PERFWORK_VAR", "PERFWORK_BEHIND_PROXY", "PERFWORK_HSTS_PRELOAD", "PERFWORK_HSTS_SUBDOMAINS",
    "PERFWORK_URL", "PERFWORK_KEY", "PERFWORK_ALL_TESTS", "PERFWORK_MUTATIONS", "PERFWORK_COMMITS", "PERFWORK_KILLS",
    "PERFWORK_CRASH_EVERY", "PERFWORK_CRASH_KILLS", "PERFWORK_CRASH_MAILS", "PERFWORK_ORDERS", "PERFWORK_OTAVA",
    "PERFWORK_DEBIAN",
}  # fmt: skip


def check_settings(**options: Any) -> list[CheckMessage]:
    """Check all settings without using the database or the network."""
    return [*_composing(), *_unknown(), *_broker(), *_addresses(), *_paths()]


def check_signatures(databases: Any = None, **options: Any) -> list[CheckMessage]:
    """Tell of developers' OpenPGP signatures that count as none; looks at the newest mail if a database is named."""
    from tracker.models import RawMessage

    keyring = settings.PERFWORK_KEYRING
    if not databases or (shutil.which("gpg") and keyring and (Path(keyring) / "openpgp").is_dir()):
        return []
    newest = RawMessage.objects.filter(erased_at=None).order_by("-pk").values_list("compressed", flat=True)[:_NEWEST]
    try:
        heads = [zlib.decompressobj().decompress(bytes(compressed), _HEAD) for compressed in newest]
    except DatabaseError:  # no table yet: `migrate` runs the checks, too
        return []
    if not (seen := sum(bool(_OPENPGP.search(head)) for head in heads)):
        return []
    text = f"{seen} of the newest {_NEWEST} mails have a developer's OpenPGP signature, which counts as none"
    hint = "install gpg, and put the developers' keys into openpgp/ of PERFWORK_KEYRING"
    return [Notice(text, hint=hint, id="perfwork.W004")]


def check_connections() -> list[CheckMessage]:
    """Connect to the database, the broker, and all servers that the settings name; each has ten seconds or so."""
    return [*_database_and_broker(), *_mail_server(), *_dkim_record(), *_remote_archives(), *_web_servers()]


def _unreachable(name: str, why: object) -> CheckMessage:
    return Error(f"{name}: {' '.join(str(why).split())[:300]}", id="perfwork.E004")


def _database_and_broker() -> Iterator[CheckMessage]:
    from django.db import connection
    from kombu import Connection

    try:
        connection.ensure_connection()
    except DatabaseError as error:
        yield _unreachable("DATABASE_URL", error)
    if settings.CELERY_BROKER_URL.startswith("filesystem:"):
        return
    try:
        with Connection(settings.CELERY_BROKER_URL, connect_timeout=_PATIENCE) as broker:
            broker.ensure_connection(max_retries=1, timeout=_PATIENCE)
    except Exception as error:  # whatever the client of this broker raises
        yield _unreachable("CELERY_BROKER_URL", error)


def _mail_server() -> Iterator[CheckMessage]:
    from bot.config import configured_transport

    if settings.EMAIL_URL:
        transport = configured_transport()
        if trouble := transport.trouble():
            yield _unreachable("EMAIL_URL", trouble)
        transport.close()


def _dkim_record() -> Iterator[CheckMessage]:
    """Tell of a key that signs our mail and is not the one in DNS: receivers would refuse what it signed."""
    import dkim

    from bot.compose.policy import Policy
    from bot.config import TRIAL, key_in_dns, send_config

    key = send_config(policy=Policy()).signing.dkim
    if key is None:
        return
    name = f"{key.selector}._domainkey.{key.domain}"
    record = key_in_dns(name)
    if record is None:
        yield _unreachable("PERFWORK_DKIM_KEY", f"DNS does not answer for {name}")
    elif not record:
        yield _unreachable("PERFWORK_DKIM_KEY", f"no record {name} in DNS; `setup dns` prints it")
    elif not dkim.verify(key.sign(TRIAL), dnsfunc=lambda name, timeout=5: record.encode()):
        yield _unreachable("PERFWORK_DKIM_KEY", f"the record {name} in DNS is of another key; `setup dns` prints ours")


def _remote_archives() -> Iterator[CheckMessage]:
    from bot.archives.sources import open_sources

    for address in settings.PERFWORK_ARCHIVES:
        if "://" in address:
            try:
                for source in open_sources(address):
                    source.goal()
            except Unreadable as error:
                yield _unreachable("PERFWORK_ARCHIVES", error)


def _web_servers() -> Iterator[CheckMessage]:
    import requests

    for name in ("PERFWORK_LORE", "PERFWORK_READER_URL"):
        if url := getattr(settings, name):
            try:
                requests.head(url, timeout=_PATIENCE)  # any answer is one
            except requests.RequestException as error:
                yield _unreachable(name, error)


def _composing() -> Iterator[CheckMessage]:
    """Yield what the mailmap, keyring, rule names, policy, keys and transport say themselves."""
    # Imported here: a command that needs none of it starts in half the time.
    from bot.compose.policy import Policy
    from bot.config import compose_config, configured_transport, file_policy, identity_without_keys, send_config

    try:
        identity_without_keys()
        policy = file_policy() or Policy()  # what operators wrote on the page was checked there
        compose_config(policy)
        send_config(policy=policy)
        if settings.EMAIL_URL:
            configured_transport()
    except (ImproperlyConfigured, ValueError) as error:
        yield Error(str(error), id="perfwork.E001")


def _unknown() -> Iterator[CheckMessage]:
    known = {name for name in dir(settings) if name.startswith("PERFWORK_")} | _ELSEWHERE
    for name in sorted(os.environ):
        if name.startswith("PERFWORK_") and name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else "docs/reference.md has all of them"
            yield Notice(f"{name}: there is no such setting", hint=hint, id="perfwork.W001")


def _broker() -> Iterator[CheckMessage]:
    from kombu.transport import TRANSPORT_ALIASES

    scheme = urlsplit(settings.CELERY_BROKER_URL).scheme
    if scheme.partition("+")[0] not in TRANSPORT_ALIASES:  # redis+socket
        expected = "expected amqp://, redis:// or filesystem://"
        yield Error(f"CELERY_BROKER_URL: {expected}, found {scheme[:40]!r}", id="perfwork.E002")


def _addresses() -> Iterator[CheckMessage]:
    named = {
        "PERFWORK_BOT_ADDRESS": [settings.PERFWORK_BOT_ADDRESS],
        "PERFWORK_LIST_ADDRESS": [settings.PERFWORK_LIST_ADDRESS],
        "PERFWORK_OPERATORS": settings.PERFWORK_OPERATORS,
        "PERFWORK_BULLETINS": settings.PERFWORK_BULLETINS,
    }
    for name, addresses in named.items():
        for address in addresses:
            if address and not _ADDRESS.fullmatch(address):
                yield Error(
                    f"{name}: expected an address like lab@example.org, found {address[:80]!r}", id="perfwork.E003"
                )


def _paths() -> Iterator[CheckMessage]:
    paths = [("PERFWORK_TREES", value.partition("#")[0]) for value in settings.PERFWORK_TREES.values()]
    paths += [
        ("PERFWORK_ARCHIVES", value) for value in settings.PERFWORK_ARCHIVES if "://" not in value and value != "-"
    ]
    for name, value in paths:
        path = Path(value)
        if hidden := hidden_part(path):
            yield Notice(f"{name}: {str(hidden)[:200]} can't be read by this user", id="perfwork.W003")
        elif not path.exists():
            yield Notice(
                f"{name}: {value[:200]} does not exist", hint="clone it, or correct the path", id="perfwork.W002"
            )
