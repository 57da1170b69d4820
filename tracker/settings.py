"""All settings, read once from the environment, with defaults that are safe on a fresh machine.

`PERFWORK_ENV=FILE` adds settings from an env file, which never override the real environment. docs/reference.md lists
every name. A bad value is rejected in one line that names the setting, with what was expected and what was found; the
value of a URL is left out, since it may hold a password.
"""

import os
import re
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

# --- Typed settings ---

env = environ.Env()
T = TypeVar("T")
_SWITCH_VALUES = dict.fromkeys(("on", "true", "yes", "1"), True) | dict.fromkeys(("off", "false", "no", "0"), False)
_ADDRESS = re.compile(r"[\w.!#$%&'*/=?^`{|}~-]+@[\w.-]+", re.ASCII)


def parse_setting(
    name: str, expected: str, read: Callable[[], T], is_valid: Callable[[T], bool] = lambda value: True
) -> T:
    """Return `read()`. Raises ImproperlyConfigured, which says what was expected and what was found."""
    try:
        value = read()
        if not is_valid(value):
            raise ValueError
        return value
    except (ValueError, KeyError, TypeError, ImproperlyConfigured):
        # A URL may hold a password, which must not be logged.
        suffix = "" if name.endswith("_URL") else f", found {os.environ.get(name, '')[:80]!r}"
        raise ImproperlyConfigured(f"{name}: expected {expected}{suffix}") from None


def flag(name: str, default: bool) -> bool:
    """Return a switch. A word that is neither on nor off is rejected: a typo must not let mail go out."""
    return parse_setting(
        name, "on or off", lambda: _SWITCH_VALUES[env.str(name, default="on" if default else "off").strip().lower()]
    )


def seconds(name: str, default: float) -> float:
    """Return a time span in seconds, above 0 and below 10**7 (some months)."""
    return parse_setting(
        name,
        "a number of seconds",
        lambda: float(env.str(name, default=str(default))),
        lambda span: 0 < span < 10**7,
    )


def positive_int(name: str, default: int) -> int:
    """Return a whole number above 0 and below one million."""
    return parse_setting(
        name,
        "a whole number from 1 to 999999",
        lambda: int(env.str(name, default=str(default))),
        lambda number: 0 < number < 10**6,
    )


def pairs(name: str, expected: str = "comma-separated name=path pairs", key: str = r".+") -> dict[str, str]:
    """Return comma-separated name=value pairs as a dict; `key`: the pattern that a name must match."""
    return parse_setting(
        name,
        expected,
        lambda: dict(pair.split("=", 1) for pair in env.list(name, default=[])),
        lambda by_name: all(re.fullmatch(key, own) and value for own, value in by_name.items()),
    )


def address(name: str, default: str) -> str:
    """Return an email address in ASCII, without a +tag."""
    return parse_setting(
        name,
        "an address like perfbot@bot.example.org",
        lambda: str(env.str(name, default=default)),
        lambda value: bool(_ADDRESS.fullmatch(value)),
    )


def database(name: str, default: str) -> dict[str, Any]:
    """Return Django's database settings from a URL."""

    def read() -> dict[str, Any]:
        url = env.str(name, default="") or default  # a line without a value, as in deploy/perfwork.env
        if not url.startswith(("sqlite:", "postgres:", "postgresql:")):
            raise ValueError
        return dict(env.db_url_config(url))

    return parse_setting(name, "sqlite:///path or postgres://user:password@host/name", read)


def postgresql_options(period: float, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return how to connect to PostgreSQL so that a machine that vanishes holds up no other; `given` has precedence.

    `period`: seconds after which the server ends an idle transaction, and frees its locks; at least 5. A process
    notices within half a minute that the server's machine is gone; TCP alone takes up to two hours.
    """
    ours = {
        "options": f"-c idle_in_transaction_session_timeout={int(1000 * max(5.0, period))}",
        "connect_timeout": 10,
        "keepalives_idle": 15,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 30_000,
    }
    if "options" in given:  # the later of two wins
        given = {**given, "options": f"{ours['options']} {given['options']}"}
    return {**ours, **given}


# --- The env file and var/ ---

BASE_DIR = Path(__file__).resolve().parent.parent

FROM_ENVIRONMENT = frozenset(os.environ)  # what is in there later comes from the env file
if env_file := env.str("PERFWORK_ENV", default=""):
    if not Path(env_file).is_file():
        raise ImproperlyConfigured(f"PERFWORK_ENV: no such file: {env_file}")
    env.read_env(env_file)

# How the commands are called in what pages and commands say: an installation has a program, a checkout has manage.py.
PROGRAM = "perfwork" if env_file == "/etc/perfwork.env" else "./manage.py"

VAR = Path(env.str("PERFWORK_VAR", default=str(BASE_DIR / "var")))
try:
    VAR.mkdir(parents=True, exist_ok=True)  # the database, the queue and the drop directory live here
except OSError as _why:
    raise ImproperlyConfigured(f"PERFWORK_VAR: cannot create {VAR}: {_why.strerror}") from None

DOCUMENTATION = BASE_DIR / "build" / "help"  # where `./manage.py documentation` builds what /help/ shows

# --- Bot, mail, archives and trees ---

PERFWORK_BOT_ADDRESS: str = address("PERFWORK_BOT_ADDRESS", "perfbot@localhost")
PERFWORK_BOT_NAME: str = env.str("PERFWORK_BOT_NAME", default="Perfwork")
PERFWORK_LIST_ADDRESS: str = env.str("PERFWORK_LIST_ADDRESS", default="")
PERFWORK_LISTS: list[str] = env.list("PERFWORK_LISTS", default=[])
PERFWORK_ANSWER_REPORTERS: list[str] = env.list("PERFWORK_ANSWER_REPORTERS", default=[])
PERFWORK_COMMAND_PREFIX: str = env.str("PERFWORK_COMMAND_PREFIX", default="#lkp")
PERFWORK_BASE_URL: str = env.str("PERFWORK_BASE_URL", default="http://127.0.0.1:8000").rstrip("/")
PERFWORK_BULLETINS: list[str] = [address.strip() for address in env.list("PERFWORK_BULLETINS", default=[])]
PERFWORK_DIGEST: bool = flag("PERFWORK_DIGEST", False)
PERFWORK_SUGGESTIONS: bool = flag("PERFWORK_SUGGESTIONS", True)
PERFWORK_WEBHOOKS_PRIVATE: bool = flag("PERFWORK_WEBHOOKS_PRIVATE", False)
PERFWORK_METRICS_KEY: str = env.str("PERFWORK_METRICS_KEY", default="")
PERFWORK_PAGE_CACHE: bool = flag("PERFWORK_PAGE_CACHE", True)
PERFWORK_LAB: str = env.str("PERFWORK_LAB", default=PERFWORK_BOT_NAME)
PERFWORK_LKML: str = env.str("PERFWORK_LKML", default="linux-kernel@vger.kernel.org")
PERFWORK_TREE_LISTS: dict[str, str] = pairs("PERFWORK_TREE_LISTS", "comma-separated tree=address pairs")
PERFWORK_REGZBOT: str = env.str("PERFWORK_REGZBOT", default="")
PERFWORK_SUBJECT: str = env.str("PERFWORK_SUBJECT", default="seed")
PERFWORK_REPRODUCE: str = env.str("PERFWORK_REPRODUCE", default="")
PERFWORK_ATTACH: list[str] = env.list("PERFWORK_ATTACH", default=[])
PERFWORK_MOST_PEOPLE: int = positive_int("PERFWORK_MOST_PEOPLE", 40)
PERFWORK_OLDEST_DAYS: int = positive_int("PERFWORK_OLDEST_DAYS", 365)
PERFWORK_POLICY: str = env.str("PERFWORK_POLICY", default="")
PERFWORK_ROBOTS: list[str] = env.list("PERFWORK_ROBOTS", default=["lkp@intel.com", "oliver.sang@intel.com"])
PERFWORK_OPERATORS: list[str] = env.list("PERFWORK_OPERATORS", default=[])
PERFWORK_TRUSTED_AUTHSERV: list[str] = env.list("PERFWORK_TRUSTED_AUTHSERV", default=[])
PERFWORK_SIGNERS: dict[str, frozenset[str]] = {
    address.lower(): frozenset(domains.lower().split("+"))
    for address, domains in pairs(
        "PERFWORK_SIGNERS", "comma-separated address=domain pairs", r"[^@\s]+@[\w.-]+"
    ).items()
}
PERFWORK_KEYRING: str = env.str("PERFWORK_KEYRING", default="")
PERFWORK_DNS: bool = flag("PERFWORK_DNS", False)
PERFWORK_RULES_OFF: list[str] = env.list("PERFWORK_RULES_OFF", default=[])
PERFWORK_MAILMAP: str = env.str("PERFWORK_MAILMAP", default="")
PERFWORK_READER_URL: str = env.str("PERFWORK_READER_URL", default="").rstrip("/")
PERFWORK_READER_MODEL: str = env.str("PERFWORK_READER_MODEL", default="default")
PERFWORK_READER_KEY: str = env.str("PERFWORK_READER_KEY", default="")
PERFWORK_READER_TIMEOUT: float = seconds("PERFWORK_READER_TIMEOUT", 60.0)
PERFWORK_READER_A_DAY: int = positive_int("PERFWORK_READER_A_DAY", 200)
PERFWORK_TRUST: str = env.str("PERFWORK_TRUST", default="verified")
PERFWORK_ARCHIVES: list[str] = env.list("PERFWORK_ARCHIVES", default=[])
PERFWORK_FETCH: bool = flag("PERFWORK_FETCH", False)
PERFWORK_LORE: str = env.str("PERFWORK_LORE", default="")
PERFWORK_TREES: dict[str, str] = pairs("PERFWORK_TREES", key=r"[^:#\s]+")
PERFWORK_TREE_ROLES: dict[str, str] = pairs("PERFWORK_TREE_ROLES", "comma-separated name=role pairs")
PERFWORK_FETCH_EVERY: float = seconds("PERFWORK_FETCH_EVERY", 600.0)
PERFWORK_FETCH_PATIENCE: float = seconds("PERFWORK_FETCH_PATIENCE", 900.0)
PERFWORK_ARCHIVE_PATIENCE: float = seconds("PERFWORK_ARCHIVE_PATIENCE", 60.0)
PERFWORK_DROP = Path(env.str("PERFWORK_DROP", default=str(VAR / "drop")))
PERFWORK_PRUNE: bool = flag("PERFWORK_PRUNE", True)
PERFWORK_BACKUPS: str = env.str("PERFWORK_BACKUPS", default="")
PERFWORK_APPROVE_FIRST: bool = flag("PERFWORK_APPROVE_FIRST", True)
PERFWORK_PERIOD: float = seconds("PERFWORK_PERIOD", 60.0)
PERFWORK_LEASE: float = seconds("PERFWORK_LEASE", 300.0)
PERFWORK_SENDING: bool = flag("PERFWORK_SENDING", True)
PERFWORK_EHLO: str = env.str("PERFWORK_EHLO", default="")
PERFWORK_SMTP_TIMEOUT: float = seconds("PERFWORK_SMTP_TIMEOUT", 60.0)
PERFWORK_DOUBT_AFTER: float = seconds("PERFWORK_DOUBT_AFTER", 6 * 3600.0)
PERFWORK_RESEND: bool = flag("PERFWORK_RESEND", False)
PERFWORK_SENT: str = env.str("PERFWORK_SENT", default="")
PERFWORK_DKIM_KEY: str = env.str("PERFWORK_DKIM_KEY", default="")
PERFWORK_DKIM_SELECTOR: str = env.str("PERFWORK_DKIM_SELECTOR", default="perfwork")
PERFWORK_DKIM_DOMAIN: str = env.str("PERFWORK_DKIM_DOMAIN", default="")
PERFWORK_PATATT_KEY: str = env.str("PERFWORK_PATATT_KEY", default="")
PERFWORK_PATATT_SELECTOR: str = env.str("PERFWORK_PATATT_SELECTOR", default="")
EMAIL_URL: str = env.str("EMAIL_URL", default="")


def _is_mailbox(url: str) -> bool:
    """Whether a URL names a folder on an IMAP server. An error would have the password in its message."""
    try:
        parts = urlsplit(url)
        has_server = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return parts.scheme in ("imap", "imaps") and has_server and not parts.query and not parts.fragment


if PERFWORK_SENT and not _is_mailbox(PERFWORK_SENT):
    raise ImproperlyConfigured(
        "PERFWORK_SENT: expected imaps://user:password@host/Sent, with special characters of the password as %XX"
    )

if PERFWORK_SENT and PERFWORK_SENT not in PERFWORK_ARCHIVES:
    PERFWORK_ARCHIVES.append(PERFWORK_SENT)  # a mail that is found there was sent

if PERFWORK_READER_URL and not PERFWORK_READER_URL.startswith(("http://", "https://")):
    raise ImproperlyConfigured("PERFWORK_READER_URL: expected an address such as http://127.0.0.1:8080/v1")

if PERFWORK_TRUST not in ("verified", "open", "maintainers"):
    raise ImproperlyConfigured(f"PERFWORK_TRUST: expected verified, open or maintainers, found {PERFWORK_TRUST!r}")

if PERFWORK_SUBJECT not in ("seed", "metric", "tree"):
    raise ImproperlyConfigured(f"PERFWORK_SUBJECT: expected seed, metric or tree, found {PERFWORK_SUBJECT!r}")

if _unknown := sorted(set(PERFWORK_ATTACH) - {"job", "script"}):
    raise ImproperlyConfigured(f"PERFWORK_ATTACH: expected job or script, found {_unknown[0]!r}")

for _tree, _role in PERFWORK_TREE_ROLES.items():
    if _role not in ("mainline", "next", "stable", "maintainer"):
        raise ImproperlyConfigured(
            f"PERFWORK_TREE_ROLES: {_tree}: expected mainline, next, stable or maintainer, found {_role!r}"
        )

# --- Safety ---

DEBUG: bool = flag("DEBUG", False)
LOOPBACK = ["localhost", "127.0.0.1", "[::1]"]
ALLOWED_HOSTS: list[str] = env.list("ALLOWED_HOSTS", default=LOOPBACK)


SECRET_KEY: str = env.str("SECRET_KEY", default="")
if not SECRET_KEY:
    if not set(ALLOWED_HOSTS) <= set(LOOPBACK):
        raise ImproperlyConfigured(
            "SECRET_KEY is not set, but ALLOWED_HOSTS has hosts other than loopback: set SECRET_KEY to 50 or more"
            " random characters"
        )
    _secret_file = VAR / "secret-key"  # random, for this installation: only used while the site is on loopback
    if not _secret_file.exists():
        _secret_file.touch(mode=0o600)
        _secret_file.write_text(secrets.token_urlsafe(60))
    SECRET_KEY = _secret_file.read_text().strip()
elif SECRET_KEY.startswith("django-insecure-") or len(SECRET_KEY) < 50 or len(set(SECRET_KEY)) < 5:
    raise ImproperlyConfigured(
        "SECRET_KEY can be guessed: set it to 50 or more random characters (python3 -c 'import secrets;"
        " print(secrets.token_urlsafe(60))')"
    )

# Former keys, while their links and sessions are still to work; new ones are made with SECRET_KEY.
SECRET_KEY_FALLBACKS: list[str] = env.list("SECRET_KEY_FALLBACKS", default=[])
if any(len(key) < 50 or len(set(key)) < 5 for key in SECRET_KEY_FALLBACKS):
    raise ImproperlyConfigured("SECRET_KEY_FALLBACKS: expected former keys of 50 or more random characters")

if DEBUG and not set(ALLOWED_HOSTS) <= set(LOOPBACK):
    raise ImproperlyConfigured("DEBUG shows settings and code to everybody: unset it, or serve loopback hosts only")

_https = PERFWORK_BASE_URL.startswith("https://")
SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _https
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz|metrics)$"]  # asked from inside, without TLS
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if _https else 0
# Both bind other hosts of the domain, the second one for months after it is taken back: whoever runs them decides.
SECURE_HSTS_INCLUDE_SUBDOMAINS = _https and flag("PERFWORK_HSTS_SUBDOMAINS", False)
SECURE_HSTS_PRELOAD = _https and flag("PERFWORK_HSTS_PRELOAD", False)
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]  # `check --deploy` would want both
_behind_proxy = flag("PERFWORK_BEHIND_PROXY", False)
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if _behind_proxy else None
CSRF_TRUSTED_ORIGINS = [PERFWORK_BASE_URL] if _https else []

# --- Django ---

INSTALLED_APPS = [
    "django.contrib.admin.apps.SimpleAdminConfig",  # commands do without the admin (tracker/urls.py)
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django_filters",
    "csp",
    "tracker",
    "bot",
]
MIDDLEWARE = [
    "tracker.middleware.measured_requests",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.middleware.gzip.GZipMiddleware",
    "tracker.middleware.folded_reports",
    "tracker.middleware.private_pages",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "tracker.middleware.named_controls",
    "tracker.pages.http.Refusals",
    "tracker.pages.cached.CachedPages",
]
ROOT_URLCONF = "bot.urls"
WSGI_APPLICATION = "tracker.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "tracker.pages.http.navigation",
            ],
            "builtins": ["tracker.templatetags.words"],
        },
    },
]


# In each web process. Pages have a cache of their own, so that they push nothing else out.
_memory = "django.core.cache.backends.locmem.LocMemCache"
CACHES = {
    "default": {"BACKEND": _memory},
    "pages": {"BACKEND": _memory, "LOCATION": "pages", "OPTIONS": {"MAX_ENTRIES": 300}},
}
DATABASES = {"default": database("DATABASE_URL", f"sqlite:///{VAR / 'perfwork.sqlite3'}")}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # WAL lets pages be read while a worker writes. IMMEDIATE takes the write lock at BEGIN, where the busy
    # timeout applies; a later upgrade would fail at once. FULL: a mail once recorded as sent stays so after
    # a power cut. Foreign keys are switched on by Django itself.
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 30,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL",
    }
else:  # connecting to PostgreSQL takes 10 ms, more than all queries of a page
    DATABASES["default"] |= {"CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}
    DATABASES["default"]["OPTIONS"] = postgresql_options(PERFWORK_PERIOD, DATABASES["default"].get("OPTIONS", {}))
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "releases"
AUTHENTICATION_BACKENDS = ["tracker.services.accounts.LimitedPasswords"]
# Scrypt takes 60 ms and 16 MB for a password, which a stolen database makes as dear; PBKDF2, the default, takes 500 ms.
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.ScryptPasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",  # of accounts from before
]
# On the server, so that a sign-out ends them. Readers who never signed in have none, and cost no query.
SESSION_ENGINE = "tracker.services.accounts"
SESSION_COOKIE_AGE = 14 * 24 * 3600
# Only our own files: inline scripts and styles are blocked.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
        "base-uri": ["'none'"],
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
STATIC_URL = "static/"
FIXTURE_DIRS = [BASE_DIR / "fixtures"]
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True  # served straight from static/: no collectstatic step, no STATIC_ROOT
WHITENOISE_AUTOREFRESH = DEBUG

# --- Celery ---

# It only wakes the workers, so a file-system queue is enough until a broker is set (DESIGN rule 7).
CELERY_BROKER_URL: str = env.str("CELERY_BROKER_URL", default="filesystem://")
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, object] = {}
if CELERY_BROKER_URL.startswith("filesystem:"):
    _queue = VAR / "queue"
    _queue.mkdir(exist_ok=True)
    (_queue / "control").mkdir(exist_ok=True)
    CELERY_BROKER_TRANSPORT = "bot.celery:FolderTransport"
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": str(_queue),
        "data_folder_out": str(_queue),
        "control_folder": str(_queue / "control"),
        "polling_interval": 0.1,
    }

# --- Logs ---

# Lines on stderr, or JSON for a collector.
LOG_LEVEL: str = env.str("LOG_LEVEL", default="INFO").upper()
if LOG_LEVEL not in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"):
    raise ImproperlyConfigured(f"LOG_LEVEL: expected DEBUG, INFO, WARNING, ERROR or CRITICAL, found {LOG_LEVEL!r}")
LOG_FORMAT: str = env.str("LOG_FORMAT", default="line")
if LOG_FORMAT not in ("line", "json"):
    raise ImproperlyConfigured(f"LOG_FORMAT: expected line or json, found {LOG_FORMAT!r}")
_frameworks = {"level": "DEBUG" if LOG_LEVEL == "DEBUG" else "WARNING"}  # Celery logs each task four times
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        "context": {"()": "tracker.logs.AddContext"},
        "database": {"()": "tracker.logs.OncePerMinute"},
    },
    # Only the one that is used: each is made at every start, and the JSON one imports 60 ms of code.
    "formatters": {
        LOG_FORMAT: (
            {"()": "tracker.logs.json_formatter"}
            if LOG_FORMAT == "json"
            else {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s%(context)s"}
        )
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT, "filters": ["context"]}},
    "loggers": {
        "celery": _frameworks,
        "kombu": _frameworks,
        "mail.log": {"level": "WARNING"},  # aiosmtpd logs every line of every SMTP dialogue
        "flufl.bounce": {"level": "CRITICAL"},  # it logs every bounce format that it tries
        # A warning for each 404 would let strangers fill the log.
        "django.request": {"level": "ERROR", "filters": ["database"]},
        "waitress.queue": {"level": "ERROR"},  # it logs each request that waits for a thread
        "kombu.connection": {"level": "ERROR"},  # a file-system queue has no host name and needs none
    },
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
}
