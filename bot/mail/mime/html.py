"""Convert HTML to the plain text that its reader sees; nothing is executed, and blockquotes become quotes."""

from __future__ import annotations

import html
import re

# The name may have a colon, as in Outlook's <o:p>; quoted attribute values may contain anything.
_TAG = re.compile(r"</?([A-Za-z][\w:-]{0,30})((?:[\s/](?:\"[^\"<]{0,20000}\"|'[^'<]{0,20000}'|[^<>\"']){0,4000})?)>")
_HREF = re.compile(r"\bhref\s*=\s*[\"']?(https?://[^\s\"'<>]{3,500})", re.I)
_BARE = re.compile(r"\"[^\"]*\"|'[^']*'")  # attribute values
# Without an end tag they can hide nothing.
_VOID = frozenset("br hr img input meta link area base col embed source track wbr".split())  # noqa: SIM905
_BLOCKS = frozenset(
    "br p div tr li ul ol table h1 h2 h3 h4 h5 h6 blockquote pre hr section article header footer".split()  # noqa: SIM905
)
_HIDDEN = frozenset(["script", "style", "head", "template", "noscript", "title"])
MAX = 2_000_000


class _TextOutput:
    """The text so far: finished lines, the current line, and its quote depth."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.line: list[str] = []
        self.depth = 0
        self.pre = 0

    def write(self, text: str) -> None:
        if not text:
            return
        text = html.unescape(text)
        if self.pre:
            first, *rest = text.split("\n")
            self.line.append(first)
            for each in rest:
                self.end_line()
                self.line.append(each)
        else:
            self.line.append(re.sub(r"[ \t\r\n\f]+", " ", text))

    def end_line(self) -> None:
        text = "".join(self.line)
        self.lines.append("> " * min(self.depth, 20) + (text.rstrip() if self.pre else text.strip()))
        self.line = []


def as_text(markup: str) -> str:
    """Return plain text with a line per block, `> ` before lines of a blockquote, and links in angle brackets."""
    output = _TextOutput()
    position, hidden_tag, hidden_depth = 0, "", 0
    markup = markup[:MAX]
    closes_none = len(markup)  # there is no ">" from here on
    while position < len(markup):
        start = markup.find("<", position)
        if start < 0:
            start = len(markup)
        if not hidden_tag:
            output.write(markup[position:start])
        if markup.startswith("<!--", start):
            end = markup.find("-->", start)
            position = end + 3 if end >= 0 else len(markup)
            continue
        tag = _TAG.match(markup, start)
        if not tag:
            end = start
            if markup[start + 1 : start + 2] in ("!", "?") and start < closes_none:
                end = markup.find(">", start)
                closes_none = closes_none if end >= 0 else start
            if end == start and not hidden_tag and start < len(markup):
                output.write("<")
            position = max(end, start) + 1
            continue
        position = tag.end()
        name, closes = tag[1].lower(), markup[start + 1] == "/"
        if hidden_tag:
            if name == hidden_tag:
                hidden_depth += -1 if closes else 1
                hidden_tag = hidden_tag if hidden_depth else ""
            elif hidden_tag == "head" and name == "body":  # an unclosed head
                hidden_tag, hidden_depth = "", 0
        elif not closes and name not in _VOID and (name in _HIDDEN or _is_hidden(tag[2])):
            hidden_tag, hidden_depth = name, 1
        else:
            _show(output, name, closes, tag[2])
    output.end_line()
    return re.sub(r"\n{3,}", "\n\n", "\n".join(output.lines)).strip("\n")


def _is_hidden(attributes: str) -> bool:
    """Whether a tag hides its content: by its style, or by the `hidden` attribute."""
    style = re.search(r"\bstyle\s*=\s*(\"[^\"]*\"|'[^']*'|\S+)", attributes, re.I)
    if style and re.search(r"display\s*:\s*none", style[1], re.I):
        return True
    return bool(re.search(r"(?:\A|\s)hidden(?=[\s=/]|\Z)", _BARE.sub("", attributes), re.I))


def _show(output: _TextOutput, name: str, closes: bool, attributes: str) -> None:
    if name in _BLOCKS:
        if name == "br" or any(each.strip() for each in output.line):
            output.end_line()
        output.line.clear()
        if name == "blockquote":
            output.depth = max(0, output.depth + (-1 if closes else 1))
        elif name == "pre":
            output.pre = max(0, output.pre + (-1 if closes else 1))
    elif name in ("td", "th"):
        output.line.append(" ")
    elif name == "a" and not closes and (link := _HREF.search(attributes)):
        output.line.append(f"<{html.unescape(link[1])}> ")
