"""The sentences of a reply, without code, tables, logs and patches; and which are mere courtesy.

Rules read one sentence at a time, since a cue depends on the words around it: a question, a condition or a "not"
elsewhere in the mail does not concern it. A sentence knows the quoted line right above it. Courtesy is greetings,
thanks and good wishes, which say nothing about the report.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from bot.mail.quoting import FOOTER, TextLine

# --- Splitting ---

MAX_SENTENCES = 400
MAX_LINES = 20_000
MAX_LENGTH = 600  # characters; the rules match no more of a sentence

# A commit message begins below these, which is not a reply: git's head, a scissors line (git-mailinfo(1)).
_MESSAGE_BEGINS = re.compile(r"From [0-9a-f]{40} |From: .{1,200}<|Subject: |\s?[-*=]{1,40}\s?(?:8<|>8|%<)")
_DIFF_BEGINS = re.compile(r"diff --git |Index: \S|--- (?:a/|/dev/null|\S+\.[chS]\b)|@@ -\d")
_IN_DIFF = re.compile(r"[-+ @\\\t]|diff |index |new file|deleted |similarity |rename |old mode|new mode|\Z")
_SIGNATURE = re.compile(r"--\s?\Z|-----BEGIN PGP")
# Columns of numbers, rows of symbols, shell prompts, git graphs, code, the name of a metric alone.
_NO_PROSE = re.compile(
    r"\s*+(?:[|\\/*+#$%~={}<>]|\.{3,}|[-=_*]{3,}|\[[.\s]{2,}\]|\d[\d.,e+]*\s{2,}|-[\w-]+\b.{0,20}\Z|[0-9a-f]{12,40}\b"
    r"|[^\s/]*/[^\s/]*/\S*\Z|[\w-]{1,80}\.[\w.-]{0,80}\w\Z"
    r"|\[?[\w.-]{1,40}@[\w.-]{1,60}[: ][^\s$#]{0,80}\]?[$#] \S"
    r"|[^.!?]{0,60}~[\w./-]{0,80} ?(?:\([\w./-]{1,60}\))?[$#>] \S)|\t| {6,}"
)
_LISTED = re.compile(r"\s{0,3}[-*] (?![0-9a-f]{7}|\W)\S+ \S+ \S")
_CODE_ENDS = re.compile(r"(?:[;{}]|\*/|\\|\)\s?\{)\s*\Z|\s±|%\s{2}|\s{4}\S.{0,200}\s{3}\S")
_TRAILER = re.compile(r"[A-Z][A-Za-z-]{2,30}-(?:by|to):|(?:Fixes|Closes|Link|Cc|Message-ID|Subject|Date):\s", re.I)
_WORD = re.compile(r"[A-Za-z][a-z']+")
_NEXT = re.compile(r"\S")
# Abbreviations, whose full stop ends no sentence: "e.g. ", "vs. ", "i.e. ".
_SHORT = re.compile(r"(?:\b(?:e\.g|i\.e|vs|cf|etc|approx|resp|incl|aka|no|nr|fig|sec|min|max|avg)|\b[A-Z])\.\Z", re.I)
_END = re.compile(r"[.!?]+[\"')\]]{0,3}(?=\s)")
_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "…": "..."})


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence on one line, with plain quotation marks. `below`: the quoted line right above it, or ""."""

    text: str
    below: str = ""

    @property
    def asks(self) -> bool:
        """Whether it is a question."""
        return self.text.rstrip("\"') ").endswith("?")


def own_sentences(lines: Sequence[TextLine]) -> tuple[Sentence, ...]:
    """Return the sentences of unquoted lines in order, up to the signature; patches are left out."""
    sentences: list[Sentence] = []
    for paragraph in _paragraphs(lines):
        below = next((line.below for line in paragraph if line.below), "")
        text = " ".join(" ".join(line.text for line in paragraph).translate(_QUOTES).split())
        more = islice(_split(text), MAX_SENTENCES - len(sentences))
        sentences.extend(Sentence(sentence[:MAX_LENGTH], below) for sentence in more)
        if len(sentences) >= MAX_SENTENCES:
            break
    return tuple(sentences[:MAX_SENTENCES])


def _paragraphs(lines: Sequence[TextLine]) -> Iterator[list[TextLine]]:
    """Yield the paragraphs of prose. Any other line ends one, and so does a quote, even without an empty line."""
    paragraph: list[TextLine] = []
    quoted = ""  # the quoted line, if an empty line separates it from the answer
    in_message = in_diff = False
    for line in lines[:MAX_LINES]:
        if _SIGNATURE.match(line.text):
            break
        in_message = (in_message or bool(_MESSAGE_BEGINS.match(line.text))) and not in_diff
        in_diff = bool(_DIFF_BEGINS.match(line.text)) or (in_diff and bool(_IN_DIFF.match(line.text)))
        text = line.text[:1000]
        if (
            in_message
            or in_diff
            or (_NO_PROSE.match(text) and not _LISTED.match(text))
            or not _WORD.search(text)
            or _CODE_ENDS.search(text)
            or _TRAILER.match(text)
            or FOOTER.match(text.lstrip())
        ):
            if paragraph:
                yield paragraph
            paragraph = []
            quoted = line.below or quoted
        elif paragraph and not line.below:
            paragraph.append(line)
        else:
            if paragraph:
                yield paragraph
            paragraph = [TextLine(line.text, line.below or quoted)]
            quoted = ""
    if paragraph:
        yield paragraph


def _split(text: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(text):
        following = _NEXT.search(text, end.end())
        if _SHORT.search(text[max(0, end.end() - 8) : end.end()]) and not (following and following[0].isupper()):
            continue
        if sentence := text[start : end.end()].strip():
            yield sentence
        start = end.end()
    if sentence := text[start:].strip():
        yield sentence


# --- Courtesy ---

_WORDS = re.compile(
    r"(?:hi|hello|hey|thanks?|thank you|thx|cheers|ok|okay|ack|fyi|best|regards|sincerely|a lot|very much|so much|for"
    r"|the|this|your|report|reports|reporting|information|it|all|many|much|you|and|br|kind|great|nice|good|cool|awesome"
    r"|wonderful|perfect|test|testing|tests|confirm|confirming|confirmation|checking|trying|letting|me|us|know"
    r"|looking forward|(?<=for )looking (?:at|into)|quick|prompt|reply|response|help|again|both|folks|guys|lots|of"
    r"|appreciated|indeed|well|work|job)\b|[\W\d_]+",
    re.I,
)
_POLITE = re.compile(r"(?:many |a lot of )?(?:thanks?|thank you|sorry|got it|glad|you are welcome|hope)\b", re.I)
_GREETING = re.compile(r"(?:thanks?|thank you|hi|hello|sorry|ok|okay)\b[^.]{0,30}[,.!]?\Z", re.I)
_SALUTATION = re.compile(r"(?:hi|hello|hey|hallo|dear)\b[^.?!:]{0,40}[,.!]?", re.I)
MAX_TEXT = 50_000
MAX_NAMES = 200


def has_content(text: str, names: Iterable[str] = ()) -> bool:
    """Whether a text says anything besides courtesy and the names of people on the thread."""
    people = "|".join(re.escape(name) for name in sorted({*names} - {""})[:MAX_NAMES])
    text = text[:MAX_TEXT]
    text = re.sub(rf"\b(?:{people})\b", "", text, flags=re.I) if people else text
    end = 0
    while courtesy := _WORDS.match(text, end):
        end = courtesy.end()
    return end < len(text)


def is_salutation(text: str) -> bool:
    """Whether a sentence is a salutation: "Hi Lee," or "Dear all,"."""
    return bool(_SALUTATION.fullmatch(text))


def is_polite(sentence: Sentence) -> bool:
    """Whether a sentence begins with thanks, an apology or a wish; it may say more after that."""
    return bool(_POLITE.match(sentence.text))


def is_greeting(sentence: Sentence) -> bool:
    """Whether a sentence is only a greeting or thanks."""
    return bool(_GREETING.match(sentence.text))
