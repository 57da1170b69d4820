"""What an installation on one Debian machine consists of, as texts: settings, units, and pieces for other servers.

`manage.py setup` writes them. They come from deploy/, with this installation's site and folder in place of the examples
there, perf.example.org and /srv/perfwork. Nothing here touches the machine. What an operator typed is refused with
ValueError, in words that name the option, before it reaches a file or a shell.
"""

import difflib
import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

CODE = "/srv/perfwork"  # in the files of deploy/
SETTINGS, STATE = Path("/etc/perfwork.env"), Path("/var/lib/perfwork")
ARCHIVES, TREES = Path("/srv/lore"), Path("/srv/git")
LOCAL_DATABASE = "postgresql:///perfwork"
_SITE = "perf.example.org"
_LINE = re.compile(r"^(#?)(?:export )?([A-Z][A-Z_]+)=(.*)$", re.M)
_HOST = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_ADDRESS = re.compile(r"[\w.!#$%&'*/=?^`{|}~-]+@([\w.-]+)", re.ASCII)
_RELAY = re.compile(r"(\[[\w.-]+\]|[\w.-]+)(:\d{1,5})?", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)


# --- The file of settings ---


def read_settings(text: str) -> dict[str, str]:
    """Return what a file of settings sets, by name; of two lines, the last one counts, as for django-environ."""
    return {name: value.strip("'\"") for comment, name, value in _LINE.findall(text) if not comment}


def settings_in(text: str) -> set[str]:
    """Return all names of a file of settings, those that are commented out included."""
    return {name for _, name, _ in _LINE.findall(text)}


def with_settings(text: str, values: Mapping[str, str], names: Collection[str]) -> str:
    """Return a file of settings in which these are set; all others stay as they were.

    A setting is set on the line that counts, else on the one that shows its default, else at the end. Raises ValueError
    for a name that is not in `names`, and for a value that is not one line.
    """
    for name, value in values.items():
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            raise ValueError(f"{name}: there is no such setting{f'; did you mean {near[0]}?' if near else ''}")
        if not value.isprintable() or value != value.strip():
            raise ValueError(f"{name}: expected one line, found {value[:80]!r}")
        lines = [match for match in _LINE.finditer(text) if match[2] == name]
        in_force = [match for match in lines if not match[1]][-1:] or lines[:1]
        if in_force:
            start, end = in_force[0].span()
            text = f"{text[:start]}{name}={value}{text[end:]}"
        else:
            separator = "" if not text or text.endswith("\n") else "\n"
            text = f"{text}{separator}{name}={value}\n"
    return text


def settings_of(
    *, site: str = "", bot: str = "", reports: str = "", operators: str = "", database: str = ""
) -> dict[str, str]:
    """Return the settings that these options stand for; what is empty sets nothing. Raises ValueError.

    `site`: the host name of the pages. `reports`: the list that gets every report. `operators`: comma-separated.
    `database`: a URL, or `postgresql` for one on this machine, which knows the service's user by its name (PostgreSQL
    20.9, peer authentication).
    """
    values: dict[str, str] = {}
    if site:
        if not _HOST.fullmatch(site):
            raise ValueError(f"--site: expected a host name like {_SITE}, found {site[:80]!r}")
        values |= {"ALLOWED_HOSTS": f"{site},127.0.0.1", "PERFWORK_BASE_URL": f"https://{site}"}
    if bot:
        values["PERFWORK_BOT_ADDRESS"] = _address("--bot", bot)
        for option, others in (("--operator", operators), ("--list", reports)):
            if any(other.strip().partition("@")[2] == bot.partition("@")[2] for other in others.split(",")):
                raise ValueError(
                    f"{option}: the bot needs a domain of its own, such as bot.example.org: Postfix refuses all other"
                    " addresses there"
                )
    if reports:
        values["PERFWORK_LIST_ADDRESS"] = _address("--list", reports)
    if operators:
        values["PERFWORK_OPERATORS"] = ",".join(
            _address("--operator", operator.strip()) for operator in operators.split(",")
        )
    if database == "postgresql":
        values["DATABASE_URL"] = LOCAL_DATABASE
    elif database:
        if not database.startswith(("sqlite:///", "postgres://", "postgresql://")):
            raise ValueError("--database: expected postgresql, or postgres://user:password@host/name")
        values["DATABASE_URL"] = database
    return values


def _address(option: str, text: str) -> str:
    if not _ADDRESS.fullmatch(text):
        raise ValueError(f"{option}: expected an address such as dana@dev.example, found {text[:80]!r}")
    return text


# --- Mirrors ---


@dataclass(frozen=True, slots=True)
class NewMirror:
    """A clone to be made: of an archive's epoch, or of a tree. `value`: what the setting `setting` has of it."""

    url: str
    path: Path
    setting: str
    value: str


def archive_mirror(url: str) -> NewMirror:
    """Return where the epoch of a public-inbox is cloned to, so that the epochs after it are found beside it.

    Raises ValueError. https://public-inbox.org/public-inbox-v2-format.html: LIST/git/NUMBER.git.
    """
    parts = _split("--archive", url)
    name, _, epoch = parts.path.strip("/").removesuffix(".git").replace("/git/", "/").rpartition("/")
    if not _NAME.fullmatch(name) or not epoch.isdecimal():
        raise ValueError(f"--archive: expected an epoch like https://lore.kernel.org/oe-lkp/0, found {url[:100]!r}")
    folder = ARCHIVES / name
    return NewMirror(url, folder / "git" / f"{int(epoch)}.git", "PERFWORK_ARCHIVES", str(folder))


def tree_mirror(text: str) -> NewMirror:
    """Return where a tree, `NAME=URL`, is cloned to. Raises ValueError."""
    name, _, url = text.partition("=")
    if not _NAME.fullmatch(name) or not url:
        raise ValueError(f"--tree: expected NAME=URL, found {text[:100]!r}")
    _split("--tree", url)
    path = TREES / f"{name}.git"
    return NewMirror(url, path, "PERFWORK_TREES", f"{name}={path}")


def place_of(setting: str, mirror: NewMirror) -> Path | None:
    """Return where a setting's comma-separated list has this archive, or a tree of this name; None if it has not."""
    for part in (part.strip() for part in setting.split(",")):
        if mirror.setting == "PERFWORK_TREES":
            name, _, path = part.partition("=")
            if name == mirror.value.partition("=")[0]:
                return Path(path.partition("#")[0])
        elif Path(part) in (mirror.path, mirror.path.parent.parent):
            return mirror.path
    return None


def _split(option: str, url: str) -> SplitResult:
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http", "git", "ssh", "file") or not url.isprintable() or " " in url:
        raise ValueError(f"{option}: expected an address like https://…, found {url[:100]!r}")
    return parts


# --- Files of the machine ---


def command_text(code: Path) -> str:
    """Return /usr/local/bin/perfwork, which runs a command as the service does; `setup` alone stays root."""
    return f"""#!/bin/sh
# Perfwork's commands, run as its service runs them.
cd {shlex.quote(str(code))} || exit 78
[ "$1" = setup ] && exec .venv/bin/python manage.py "$@"
export PERFWORK_ENV={SETTINGS} PERFWORK_VAR={STATE} HOME={STATE}
[ "$(id -un)" = perfwork ] && exec .venv/bin/python manage.py "$@"
exec setpriv --reuid perfwork --regid perfwork --init-groups .venv/bin/python manage.py "$@"
"""


# --- Pieces for other servers ---


def nginx(template: str, settings: Mapping[str, str]) -> str:
    """Return the configuration of nginx for this site. Raises ValueError without a site."""
    return template.replace(_SITE, _site(settings))


def postfix(settings: Mapping[str, str], code: Path, relay: str = "") -> str:
    """Return shell commands that let Postfix take our mail on loopback, and pipe the bot's into `read -`.

    `relay`: the smarthost, `[smtp.example.org]:587`, whose password is in /etc/postfix/sasl_passwd; without one,
    Postfix delivers itself. Raises ValueError.
    """
    address, host = _bot(settings)
    if relay and not _RELAY.fullmatch(relay):
        raise ValueError(f"--relay: expected a server like [smtp.example.org]:587, found {relay[:80]!r}")
    values = {
        "myhostname": host,
        "mydestination": f"{host}, localhost",
        "mynetworks": "127.0.0.0/8 [::1]/128",
        "inet_interfaces": "all",
        "recipient_delimiter": "+",  # bounces and answers come to the bot's address with a tag
        "transport_maps": f"inline:{{ {address}=perfwork: }}",
        "local_recipient_maps": f"inline:{{ {address.partition('@')[0]}=x postmaster=x }}",
        "perfwork_destination_recipient_limit": "1",
    }
    if relay:
        values |= {
            "relayhost": relay,
            "smtp_tls_security_level": "secure",
            "smtp_tls_CAfile": "/etc/ssl/certs/ca-certificates.crt",
            "smtp_sasl_auth_enable": "yes",
            "smtp_sasl_password_maps": "hash:/etc/postfix/sasl_passwd",
            "smtp_sasl_tls_security_options": "noanonymous",
        }
    else:  # nothing of a smarthost of before; TLS where the other server has it, as Debian sets it
        values |= {"relayhost": "", "smtp_tls_security_level": "may", "smtp_sasl_auth_enable": "no"}
    pipe = f"perfwork unix - n n - 2 pipe flags=DRX user=perfwork:perfwork argv={code}/deploy/postfix/read-mail"
    lines = [f"postconf -e {shlex.quote(f'{name} = {value}'.rstrip())}" for name, value in values.items()]
    lines.append(f"postconf -M {shlex.quote(f'perfwork/unix={pipe}')}")
    if relay:
        lines.append("test -e /etc/postfix/sasl_passwd || install -m 600 /dev/null /etc/postfix/sasl_passwd")
        lines.append("postmap /etc/postfix/sasl_passwd")
    return "\n".join(lines) + "\n"


def dns(settings: Mapping[str, str], public_key: str, kind: str, selector: str) -> str:
    """Return the records to publish for the bot's domain: MX, SPF and DKIM (RFC 7208, RFC 6376, RFC 8463).

    `public_key`: in base64, DER of RSA, or the 32 bytes of Ed25519; `kind`: `rsa` or `ed25519`.
    """
    _, host = _bot(settings)
    whole = f"v=DKIM1; k={kind}; p={public_key}"
    parts = " ".join(f'"{whole[start : start + 250]}"' for start in range(0, len(whole), 250))  # RFC 1035, 3.3: 255
    return "\n".join(
        [
            f"{host}. IN MX 10 {host}.",
            f'{host}. IN TXT "v=spf1 mx -all"',
            f"{selector}._domainkey.{settings.get('PERFWORK_DKIM_DOMAIN') or host}. IN TXT ( {parts} )",
            "",
        ]
    )


def _bot(settings: Mapping[str, str]) -> tuple[str, str]:
    """Return the bot's address, and its domain."""
    address = settings.get("PERFWORK_BOT_ADDRESS", "")
    if not (match := _ADDRESS.fullmatch(address)):
        raise ValueError("PERFWORK_BOT_ADDRESS is not set: run setup with --bot first")
    return address, match[1]


def _site(settings: Mapping[str, str]) -> str:
    host = urlsplit(settings.get("PERFWORK_BASE_URL", "")).hostname or ""
    if not _HOST.fullmatch(host):
        raise ValueError("PERFWORK_BASE_URL has no host name: run setup with --site first")
    return host
