"""Full-text search behind one port: which reports have these words, in their own text or in one of their mails.

SQLite's FTS5 and PostgreSQL's `simple` configuration both take runs of letters and digits as words, whatever stands
between them: `will-it-scale.per_process_ops` is a phrase of six words. tracker/migrations/0003_search.py has the index.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from django.db import connection

MOST = 5000  # hits of a kind that are looked at, the newest
_WORD = re.compile(r"[^\W_]+")
_TABLES = {"report_words": "tracker_report", "message_words": "tracker_message"}  # on PostgreSQL, columns of these


def words_of(phrase: str) -> list[str]:
    """Return the words of a phrase, in lower case; [] for one of punctuation only."""
    return _WORD.findall(phrase.lower())


def reports_with(phrases: Sequence[str]) -> list[int] | None:
    """Return the keys of the reports that have all phrases, in their own text or in one mail; at most MOST of each.

    A phrase that ends in `*` matches words that begin with its last one. None: no phrase has a word.
    """
    wanted = [(words, phrase.endswith("*")) for phrase in phrases if (words := words_of(phrase))]
    if not wanted:
        return None
    found = _hits("report_words", wanted)
    mails = _hits("message_words", wanted)
    return list(dict.fromkeys([*found, *_reports_of(mails)]))


def with_own_phrase(phrase: str, most: int = 100) -> list[int]:
    """Return the keys of the newest reports that have a phrase in their own text."""
    words = words_of(phrase)
    return _hits("report_words", [(words, False)], most) if words else []


def own_words(phrase: str, most: int = 5) -> list[int]:
    """Return the keys of the newest few reports that have all words of a text in their own; after `*` its last one is a
    beginning.
    """
    words = words_of(phrase)
    wanted = [([word], phrase.endswith("*") and word is words[-1]) for word in words]
    return _hits("report_words", wanted, most) if wanted else []


def _hits(index: str, wanted: Sequence[tuple[list[str], bool]], most: int = MOST) -> list[int]:
    """Return the keys of the newest rows that match, by an index."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            query = " ".join(f'"{" ".join(words)}"{" *" if starts else ""}' for words, starts in wanted)
            cursor.execute(
                f"SELECT rowid FROM {index} WHERE {index} MATCH %s ORDER BY rowid DESC LIMIT {most}", [query]
            )
        else:
            query = " & ".join("(" + " <-> ".join(words) + (":*" if starts else "") + ")" for words, starts in wanted)
            cursor.execute(
                f"SELECT id FROM {_TABLES[index]} WHERE {index} @@ to_tsquery('simple', %s)"
                f" ORDER BY id DESC LIMIT {most}",
                [query],
            )
        return [pk for (pk,) in cursor.fetchall()]


def _reports_of(mails: Sequence[int]) -> list[int]:
    if not mails:
        return []
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            numbers = ",".join(map(str, mails))  # integers from our own query; SQLite has a limit on parameters
            cursor.execute(f"SELECT DISTINCT report_id FROM tracker_message WHERE id IN ({numbers})")
        else:
            cursor.execute("SELECT DISTINCT report_id FROM tracker_message WHERE id = ANY(%s)", [list(mails)])
        return [pk for (pk,) in cursor.fetchall()]
