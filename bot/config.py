"""Turn the settings into values: bot settings, trust anchors, composing, sending, transport and trees.

A file that can't be read, or a name that is not known, raises ImproperlyConfigured with the name of its setting; the
keys that sign our mail are tried once. The policy is that of PERFWORK_POLICY, else what operators wrote at
`/operating/policy/`; without either there are no rules, and the default limits.

DKIM keys of mail domains are cached in the database, and looked up in DNS only if that is switched on. Without a
database (`identity_without_keys`) only trusted servers and developer keys authenticate mail.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from bot.archives.sources import find_patch_mail, open_sources
from bot.compose.conventions import Attached, Conventions, SubjectForm
from bot.compose.policy import Policy, read_policy
from bot.git.repository import is_repository
from bot.mail.settings import BotSettings, TrustAnchors, read_mailmap
from bot.outbox.drafts import ComposeConfig
from bot.outbox.reconcile import RecoveryPolicy
from bot.outbox.sender import SendConfig, SentFolder
from bot.outbox.transports import DkimKey, PatattKey, SendmailTransport, Signing, SmtpTransport, Unsigned, transport_of
from bot.replies.rules import RULES
from bot.upstream.tracking import ConfiguredTree
from tracker.models import SigningKey, TextRevision
from tracker.services.accounts import configured_lists

log = logging.getLogger(__name__)

# --- DKIM keys ---

MOST = 100_000  # keys
AT_ONCE = 50  # DNS queries per batch
SECONDS = 3.0  # timeout of a query
STALE = timedelta(days=30)  # after which a name that had no key is looked up again
_SIGNATURE = re.compile(rb"^DKIM-Signature:(.{1,8000}?)(?=\n[^ \t])", re.I | re.M | re.S)
_TAG = re.compile(rb"(?:\A|;)\s*([ds])\s*=\s*([\w.-]{1,250})")


class KeyCache:
    """The records by name, in memory; loaded once per run."""

    def __init__(self, *, ask_dns: bool = False) -> None:
        self.ask_dns = ask_dns
        rows = SigningKey.objects.order_by("pk").values_list("name", "record", "fetched_at")[:MOST]
        old = datetime.now(UTC) - STALE
        self._records = {name.lower(): record for name, record, at in rows if record or at > old}
        self._domains = {name.partition("._domainkey.")[2] for name, record in self._records.items() if record}

    def key(self, name: str) -> str | None:
        """Return the record of a name, "" if there is none, None if that is unknown."""
        return self._records.get(name)

    def signs(self, domain: str) -> bool:
        """Whether we have a key of exactly this domain."""
        return domain in self._domains

    def warm(self, raws: Iterable[bytes], now: datetime) -> int:
        """Look up unknown keys of these mails' signatures in DNS. To be called outside of any transaction.

        Returns the number of lookups. Failed ones are tried again another time.
        """
        if not self.ask_dns:
            return 0
        unknown = [name for name in dict.fromkeys(_names(raws)) if name not in self._records][:AT_ONCE]
        for name in unknown:
            record = key_in_dns(name)
            if record is None:
                continue
            self._records[name] = record
            if record:
                self._domains.add(name.partition("._domainkey.")[2])
            SigningKey.objects.update_or_create(name=name, defaults={"record": record, "fetched_at": now})
        return len(unknown)


def _names(raws: Iterable[bytes]) -> Iterable[str]:
    """Yield the names of the keys that sign these mails."""
    for raw in raws:
        head = raw[:100_000].replace(b"\r\n", b"\n").partition(b"\n\n")[0] + b"\n."
        for signature in list(_SIGNATURE.finditer(head))[:5]:
            tags = {tag: value.decode("ascii", "replace").lower() for tag, value in _TAG.findall(signature[1])}
            if b"d" in tags and b"s" in tags:
                yield f"{tags[b's']}._domainkey.{tags[b'd']}"


def key_in_dns(name: str) -> str | None:
    """Return the TXT record of a name, "" if there is none, None if DNS did not answer."""
    import dns.exception
    import dns.resolver

    try:
        answers = dns.resolver.resolve(name, "TXT", lifetime=SECONDS)
        text = b"".join(next(iter(answers)).strings).decode("ascii", "replace")
        return text.replace("\0", "")[:10_000]  # a text of PostgreSQL has no NUL
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer, StopIteration):
        return ""
    except (dns.exception.DNSException, OSError, ValueError) as error:
        log.warning("DNS lookup of the key %s failed: %s", name, error)
        return None


# --- Settings to values ---

if TYPE_CHECKING:  # documents and their formats take 40 ms to import, which `read` and `send` do without
    from bot.notifications.digest import BulletinConfig
    from bot.second_opinion import Endpoint

TRIAL = b"From: a@example.org\r\nSubject: a key is tried\r\nMessage-ID: <a@example.org>\r\n\r\nA mail.\r\n"
POLICY = "policy"  # the place of its revisions
TREE_LISTS = {"next": ("linux-next@vger.kernel.org",)}  # by a tree's name or role


def bot_identity() -> BotSettings:
    """Return the bot identity, with the DKIM keys of mail domains from the database."""
    identity, keys = identity_without_keys(), KeyCache(ask_dns=settings.PERFWORK_DNS)
    anchors = replace(identity.trust_anchors, key=keys.key, signs=keys.signs, warm=keys.warm)
    return replace(identity, trust_anchors=anchors)


def identity_without_keys() -> BotSettings:
    """Return the bot identity for use without a database: only trusted servers and developer keys authenticate mail."""
    rules_off = frozenset(settings.PERFWORK_RULES_OFF)
    if settings.PERFWORK_KEYRING and not Path(settings.PERFWORK_KEYRING).is_dir():
        raise ImproperlyConfigured(f"PERFWORK_KEYRING: no such directory: {settings.PERFWORK_KEYRING}")
    aliases = read_mailmap(_content("PERFWORK_MAILMAP").decode("utf-8", "replace"))
    if unknown := sorted(rules_off - {rule.name for rule in RULES}):
        raise ImproperlyConfigured(f"PERFWORK_RULES_OFF: unknown rule {unknown[0]!r}; docs/reading.md lists all")
    return BotSettings(
        address=settings.PERFWORK_BOT_ADDRESS.lower(),
        name=settings.PERFWORK_BOT_NAME,
        list_address=settings.PERFWORK_LIST_ADDRESS.lower(),
        lists=tuple(address.lower() for address in settings.PERFWORK_LISTS),
        lkml=settings.PERFWORK_LKML.lower(),
        answer_on=frozenset(address.strip().lower() for address in settings.PERFWORK_ANSWER_REPORTERS),
        prefix=settings.PERFWORK_COMMAND_PREFIX,
        base_url=settings.PERFWORK_BASE_URL,
        robots=frozenset(address.lower() for address in settings.PERFWORK_ROBOTS),
        operators=frozenset(address.lower() for address in settings.PERFWORK_OPERATORS),
        trust_policy=settings.PERFWORK_TRUST,
        trust_anchors=TrustAnchors(
            servers=frozenset(name.lower() for name in settings.PERFWORK_TRUSTED_AUTHSERV),
            signers=settings.PERFWORK_SIGNERS,
            keyring=settings.PERFWORK_KEYRING,
            lists=configured_lists().difference(robot.lower() for robot in settings.PERFWORK_ROBOTS),
        ),
        aliases=aliases,
        secret=settings.SECRET_KEY.encode(),
        rules_off=rules_off,
    )


def compose_config(policy: Policy | None = None) -> ComposeConfig:
    """Return the compose config: mail conventions, policy, and the trees in which to look up culprits.

    `policy`: instead of that in force, which takes the database.
    """
    lists: dict[str, tuple[str, ...]] = {}
    for tree, addresses in settings.PERFWORK_TREE_LISTS.items():
        lists[tree] = tuple(address.strip().lower() for address in addresses.split("+"))
    conventions = Conventions(
        subject=SubjectForm(settings.PERFWORK_SUBJECT),
        lkml=settings.PERFWORK_LKML.lower(),
        tree_lists={**TREE_LISTS, **lists},
        regzbot=settings.PERFWORK_REGZBOT.lower(),
        reproduce=settings.PERFWORK_REPRODUCE,
        attach=frozenset(map(Attached, settings.PERFWORK_ATTACH)),
        most_people=settings.PERFWORK_MOST_PEOPLE,
        oldest=timedelta(days=settings.PERFWORK_OLDEST_DAYS),
    )
    lookup = partial(find_patch_mail, settings.PERFWORK_LORE) if settings.PERFWORK_LORE else None
    return ComposeConfig(conventions, policy or mail_policy(), tuple(tree_paths()), lookup)


def second_reader() -> Endpoint | None:
    """Return the endpoint that is asked for second opinions; None if there is none."""
    if not settings.PERFWORK_READER_URL:
        return None
    from bot.second_opinion import Endpoint

    return Endpoint(
        settings.PERFWORK_READER_URL,
        settings.PERFWORK_READER_MODEL,
        settings.PERFWORK_READER_KEY,
        settings.PERFWORK_READER_TIMEOUT,
    )


def bulletin_config() -> BulletinConfig:
    """Return the bulletin config: identity, compose config and lists (by default, our own list)."""
    lists = settings.PERFWORK_BULLETINS or [email for email in [settings.PERFWORK_LIST_ADDRESS] if email]
    from bot.notifications.digest import BulletinConfig

    return BulletinConfig(bot_identity(), compose_config(), tuple(address.lower() for address in lists))


def send_config(run: float = 0.0, policy: Policy | None = None) -> SendConfig:
    """Return the send config, once the keys that sign our mail have been tried. `run`: seconds after which no more mail
    is claimed; `policy`: instead of that in force.
    """
    policy, aliases = policy or mail_policy(), read_mailmap(_content("PERFWORK_MAILMAP").decode("utf-8", "replace"))
    address = settings.PERFWORK_BOT_ADDRESS.lower()
    domain = settings.PERFWORK_DKIM_DOMAIN or address.partition("@")[2]
    own = _content("PERFWORK_DKIM_KEY")
    developer = _content("PERFWORK_PATATT_KEY")
    signing = Signing(
        DkimKey(domain, settings.PERFWORK_DKIM_SELECTOR, own) if own else None,
        PatattKey(address, settings.PERFWORK_PATATT_SELECTOR, developer.decode("ascii", "replace").strip())
        if developer
        else None,
    )
    try:
        signing.sign(TRIAL)
    except Unsigned as error:
        raise ImproperlyConfigured(f"PERFWORK_DKIM_KEY or PERFWORK_PATATT_KEY: {error}") from None
    return SendConfig(
        lease=timedelta(seconds=settings.PERFWORK_LEASE),
        run=run,
        rates=policy.rates,
        quiet_hours=policy.quiet_hours,
        never=policy.never,
        aliases=aliases,
        signing=signing,
        sent_folder=SentFolder(urlsplit(settings.PERFWORK_SENT)) if settings.PERFWORK_SENT else None,
        settings=identity_without_keys(),
    )


def configured_transport() -> SmtpTransport | SendmailTransport:
    """Return the transport for EMAIL_URL; ValueError says what is wrong with it."""
    timeout, patience = settings.PERFWORK_SMTP_TIMEOUT, settings.PERFWORK_LEASE / 2
    return transport_of(settings.EMAIL_URL, ehlo=settings.PERFWORK_EHLO, timeout=timeout, patience=patience)


def recovery_policy() -> RecoveryPolicy:
    """Return the policy for mail in doubt."""
    own = open_sources(settings.PERFWORK_SENT)[0].name if settings.PERFWORK_SENT else ""
    return RecoveryPolicy(timedelta(seconds=settings.PERFWORK_DOUBT_AFTER), settings.PERFWORK_RESEND, own)


def mail_policy() -> Policy:
    """Return the policy of the file, if PERFWORK_POLICY names one, else the newest one of `/operating/policy/`."""
    if policy := file_policy():
        return policy
    newest = TextRevision.objects.filter(place=POLICY).order_by("-pk").first()
    try:
        return read_policy(newest.text if newest else "")
    except ValueError as error:  # such as a time zone that this machine does not know
        raise ImproperlyConfigured(f"the mail policy at /operating/policy/: {error}") from None


def file_policy() -> Policy | None:
    """Return the policy of the file that PERFWORK_POLICY names, None if it names none."""
    if not settings.PERFWORK_POLICY:
        return None
    try:
        return read_policy(policy_file())
    except ValueError as error:
        raise ImproperlyConfigured(f"PERFWORK_POLICY: {settings.PERFWORK_POLICY}: {error}") from None


def policy_file() -> str:
    """Return the text of the file that PERFWORK_POLICY names. Raises ValueError if it is not UTF-8."""
    return _content("PERFWORK_POLICY").decode("utf-8")


def _content(name: str) -> bytes:
    """Return the content of the file that a setting names, b"" if it names none; ImproperlyConfigured if it can't be
    read.
    """
    path = getattr(settings, name)
    try:
        return Path(path).read_bytes() if path else b""
    except OSError as error:
        raise ImproperlyConfigured(f"{name}: {path} can't be read: {error.strerror}") from None


def tree_paths() -> list[Path]:
    """Return the paths of the existing clones of PERFWORK_TREES."""
    paths = (Path(tree.path) for tree in configured_trees())
    return [path for path in dict.fromkeys(paths) if is_repository(path)]


def configured_trees(names: Collection[str] = ()) -> list[ConfiguredTree]:
    """Return the trees of PERFWORK_TREES, whose values are like /srv/akpm.git#mm-*; of `names` if there are any."""
    roles = settings.PERFWORK_TREE_ROLES
    values = {name: value.partition("#") for name, value in settings.PERFWORK_TREES.items()}
    trees = [ConfiguredTree(name, path, branches, roles.get(name)) for name, (path, _, branches) in values.items()]
    return [tree for tree in trees if not names or tree.name in names]
