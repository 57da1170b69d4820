"""Who is responsible for a commit, by MAINTAINERS and the rules of scripts/get_maintainer.pl.

    SLAB ALLOCATOR
    M:      maintainer             R:      reviewer              L:      mailing list
    F:      files and directories  X:      excluded files        N:      regex for file names
    K:      regex for the lines that a change adds or removes

The most specific section of each file comes first. THE REST and subscribers-only lists are left out. Patterns and
regexes are matched in linear time. `Maintainers` is pure; `responsible_for` reads what a commit changes, its files and
its lines, with MAINTAINERS and .mailmap as its own tree has them. Uses git, but not the database.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

import hyperscan

from bot.git import repository as git
from bot.git.repository import Unreadable, resolve
from bot.mail.addresses import Address, parse_addresses
from bot.mail.settings import read_mailmap

# --- MAINTAINERS ---

MAX_BYTES = 8 << 20
MAX_FILES = 1000  # per commit; a tree-wide change has no maintainer anyway
MAX_TEXT = 1 << 20  # characters of a change
MAX_REGEXES = 1000
MAX_REGEX = 500  # characters
_PARTS = re.compile(r"\[[\w-]{1,40}\]|.", re.S)
_WILD = {"?": "."}
NO_MAILMAP: Mapping[str, str] = {}
_FIELD = re.compile(r"([A-Z]):\s*(.*)")
_REST = "THE REST"


class Duty(StrEnum):
    """A role in a section."""

    MAINTAINER = "maintainer"
    REVIEWER = "reviewer"
    LIST = "list"


@dataclass(frozen=True, slots=True)
class Responsible:
    """An address, its role, and the section that lists it."""

    address: Address
    duty: Duty
    section: str

    def __str__(self) -> str:
        return f"{self.duty} of {self.section}"


@dataclass(slots=True)
class _Section:
    name: str
    people: list[Responsible] = field(default_factory=list)
    excluded: list[_Pattern] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Pattern:
    """One F: or X: line. `depth`: its number of slashes; a deeper pattern is more specific. `parts`: the pieces between
    its stars, found one after the other, the first at the start of the name: matching takes linear time.
    """

    section: int
    depth: int
    parts: tuple[re.Pattern[str], ...]
    slashes: int  # in a matching file name; -1: any number, below a directory
    directory: str = ""  # the prefix, if the pattern may be a directory without a trailing slash

    def fits(self, path: str, slashes: int) -> bool:
        if self.slashes in (-1, slashes) and self._begins(path):
            return True
        return bool(self.directory) and path.startswith(self.directory)

    def _begins(self, path: str) -> bool:
        match = self.parts[0].match(path)
        for part in self.parts[1:]:
            if match is None:
                return False
            match = part.search(path, match.end())
        return match is not None


class Maintainers:
    """The sections of one MAINTAINERS file, with an index of their patterns: parsed once, queried often."""

    def __init__(self, text: str) -> None:
        self._sections: list[_Section] = []
        self._by_directory: dict[str, list[_Pattern]] = {}
        names: list[tuple[int, str]] = []
        keywords: list[tuple[int, str]] = []
        in_section = False
        name = ""
        for line in text[:MAX_BYTES].split("\n"):
            match = _FIELD.match(line)
            if match and not in_section:
                self._sections.append(_Section(name[:200]))
                in_section = True
            if match and match[1] in "NK":
                (names if match[1] == "N" else keywords).append((len(self._sections) - 1, match[2].strip()))
            elif match:
                self._add(len(self._sections) - 1, match[1], match[2].strip())
            elif (title := line.strip()) and not title.startswith("#"):
                name, in_section = title, False
        self._names, self._keywords = Finder(names), Finder(keywords)

    def of(
        self, files: Sequence[str], changed: str = "", proper: Mapping[str, str] = NO_MAILMAP
    ) -> tuple[Responsible, ...]:
        """Return who is responsible for these files and for the changed lines, each address once.

        The most specific section of each file comes first. THE REST and subscribers-only lists are left out.
        `proper`: maps addresses to those that a mailmap prefers.
        """
        sections = dict.fromkeys(number for path in files[:MAX_FILES] for number in self._sections_of(path))
        if changed:
            sections |= dict.fromkeys(self._keywords.numbers_in(changed[:MAX_TEXT]))
        # Each address once, and each person only with their first address
        unique: list[Responsible] = []
        addresses: set[str] = set()
        names: set[str] = set()
        for person in (person for number in sections for person in self._sections[number].people):
            name, email = person.address.name, proper.get(person.address.email, person.address.email)
            if person.section != _REST and email not in addresses and not (name and name.lower() in names):
                addresses.add(email)
                names.add(name.lower())
                unique.append(replace(person, address=Address(name, email)))
        return tuple(unique)

    def _add(self, section: int, letter: str, value: str) -> None:
        owner = self._sections[section]
        match letter:
            case "M" | "R":
                duty = Duty.MAINTAINER if letter == "M" else Duty.REVIEWER
                owner.people.extend(Responsible(address, duty, owner.name) for address in parse_addresses(value))
            case "L" if "subscribers-only" not in value:
                addresses = parse_addresses(value.partition(" ")[0])
                owner.people.extend(Responsible(address, Duty.LIST, owner.name) for address in addresses)
            case "F" | "X" if pattern := _pattern(section, value):
                if letter == "X":
                    owner.excluded.append(pattern)
                else:
                    directory = re.split(r"[*?\[]", value, maxsplit=1)[0].rpartition("/")[0]  # all of it is literal
                    self._by_directory.setdefault(directory, []).append(pattern)

    def _sections_of(self, path: str) -> list[int]:
        """Return the sections of a file, the most specific first."""
        slashes = path.count("/")
        depths: dict[int, int] = {}
        for directory in ("", *(path[: slash.start()] for slash in re.finditer("/", path))):
            for pattern in self._by_directory.get(directory, ()):
                if pattern.fits(path, slashes):
                    depths[pattern.section] = max(pattern.depth, depths.get(pattern.section, -1))
        for number in self._names.numbers_in(path):
            depths.setdefault(number, 0)
        chosen = [
            number
            for number in depths
            if not any(pattern.fits(path, slashes) for pattern in self._sections[number].excluded)
        ]
        return sorted(chosen, key=lambda number: (-depths[number], number))


@lru_cache(maxsize=8)
def read_maintainers(text: str) -> Maintainers:
    """Return the parsed file. The last few are cached, since the next commit mostly has the same one."""
    return Maintainers(text)


class Finder:
    """The regexes of the file, which Perl reads with /x: all are matched at once, in linear time."""

    def __init__(self, regexes: Sequence[tuple[int, str]]) -> None:
        cleaned = [(section, re.sub(r"(?<!\\)\s+", "", regex)[:MAX_REGEX]) for section, regex in regexes[:MAX_REGEXES]]
        self._sections = [(section, regex) for section, regex in cleaned if _compiled([regex])]
        self._database = _compiled([regex for _, regex in self._sections]) if self._sections else None

    def numbers_in(self, text: str) -> list[int]:
        """Return the sections with a regex that matches the text, in file order."""
        sections: set[int] = set()
        if self._database:
            on_match = lambda number, *_: sections.add(self._sections[number][0])  # noqa: E731
            self._database.scan(text.encode("utf-8", "replace"), match_event_handler=on_match)
        return sorted(sections)


def _compiled(regexes: Sequence[str]) -> hyperscan.Database | None:
    """Return a database of them; None if one is not a valid regex or can't be matched in linear time."""
    database = hyperscan.Database()
    expressions = [regex.encode("utf-8", "replace") for regex in regexes]
    flags = [hyperscan.HS_FLAG_SINGLEMATCH | hyperscan.HS_FLAG_ALLOWEMPTY] * len(regexes)
    try:
        database.compile(expressions=expressions, ids=list(range(len(regexes))), flags=flags, elements=len(regexes))
    except hyperscan.error:
        return None
    return database


def _pattern(section: int, value: str) -> _Pattern | None:
    """Parse a pattern as get_maintainer.pl does; None if it is invalid.

    "." is literal, "*" matches anything, "?" one character, "[ch]" a set; the pattern need only match a prefix of the
    name. A pattern that ends in "/" matches everything below; any other only names with the same number of slashes, so
    that its "*" can't span one. A directory without the trailing slash still matches what is below it.
    """
    is_directory = value.endswith("/")
    if not value or len(value) > MAX_REGEX:
        return None
    try:
        parts = tuple(re.compile(_without_stars(part)) for part in value.split("*"))
    except re.error:  # "[z-a]"
        return None
    depth = -1 if value.startswith("*") else value.count("/") + (not is_directory)
    plain = not is_directory and not set(value) & set("*?.[")
    return _Pattern(section, depth, parts, -1 if is_directory else value.count("/"), f"{value}/" if plain else "")


def _without_stars(part: str) -> str:
    """Return a piece of a pattern as a regex without repetition: literals, "?" and sets."""
    return "".join(_WILD.get(token, token if len(token) > 1 else re.escape(token)) for token in _PARTS.findall(part))


# --- What a commit touches ---

_MAX_FILES_FOR_KEYWORDS = 50  # files; the lines of a larger change are not matched against keywords
_TIMEOUT = 60.0  # seconds per git call
_LINE = re.compile(rb"^[+-](?![+-]{2} )(.*)$", re.M)


def responsible_for(repositories: Iterable[Path], sha: str) -> tuple[Responsible, ...]:
    """Return whom MAINTAINERS lists for a commit, by the first tree that holds it; nobody if none can be read."""
    for repository in repositories:
        with suppress(Unreadable, OSError, ValueError):
            if full_sha := resolve(repository, [sha]).get(sha):
                return responsible_in(repository, full_sha)
    return ()


def responsible_in(repository: Path, sha: str) -> tuple[Responsible, ...]:
    """Return whom the commit's own MAINTAINERS lists for its files. Raises Unreadable, OSError and ValueError."""
    names = _git(repository, "diff-tree", "-r", "-z", "--root", "--no-commit-id", "--no-renames", "--name-only", sha)
    files = tuple(names.decode("utf-8", "replace").split("\0")[:-1][:MAX_FILES])
    maintainers_text = _file(repository, sha, "MAINTAINERS")
    if not maintainers_text:
        return ()
    proper = read_mailmap(_file(repository, sha, ".mailmap")).proper
    changed = ""  # the lines that it adds or removes, without their signs
    if len(files) <= _MAX_FILES_FOR_KEYWORDS:
        options = ("-p", "--root", "--no-commit-id", "--unified=0", "--no-color", "--no-ext-diff", "--no-textconv")
        patch = _git(repository, "diff-tree", *options, sha)
        changed = b"\n".join(match[1] for match in _LINE.finditer(patch[:MAX_TEXT])).decode("utf-8", "replace")
    return read_maintainers(maintainers_text).of(files, changed, proper)


def _file(repository: Path, sha: str, path: str) -> str:
    """Return a file as the commit has it; "" if it is missing or far too large."""
    listed = _git(repository, "ls-tree", "-l", sha, "--", path).decode("utf-8", "replace").split()
    if len(listed) < 5 or listed[1] != "blob" or not listed[3].isdigit() or int(listed[3]) > MAX_BYTES:
        return ""
    return _git(repository, "cat-file", "blob", listed[2]).decode("utf-8", "replace")


def _git(repository: Path, *arguments: str) -> bytes:
    return git.run(repository, *arguments, timeout=_TIMEOUT)
