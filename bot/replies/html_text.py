"""HTML as the plain text that its reader would see; nothing in it is obeyed, and quotes stay quotes."""

from __future__ import annotations

import html
import re

_TAG = re.compile(r"</?([A-Za-z][A-Za-z0-9]{0,20})((?:\s[^<>]{0,4000})?)>")
_HREF = re.compile(r"\bhref\s*=\s*[\"']?(https?://[^\s\"'<>]{3,500})", re.I)
_HIDDEN = re.compile(r"display\s*:\s*none|\bhidden\b", re.I)
_BLOCKS = frozenset(
    "br p div tr li ul ol table h1 h2 h3 h4 h5 h6 blockquote pre hr section article header footer".split()  # noqa: SIM905
)
_UNSEEN = frozenset(["script", "style", "head", "template", "noscript", "title"])
MAX = 2_000_000


class _Page:
    """The text so far: finished lines, the line being written, and how deep in quotes it stands."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.line: list[str] = []
        self.depth = 0
        self.pre = 0

    def write(self, text: str) -> None:
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
    """Plain text with a line for each block, `> ` before what stands in a blockquote, and links in angles."""
    page = _Page()
    position, unseen, inside = 0, "", 0
    markup = markup[:MAX]
    while position < len(markup):
        start = markup.find("<", position)
        if start < 0:
            start = len(markup)
        if not unseen:
            page.write(markup[position:start])
        if markup.startswith("<!--", start):
            end = markup.find("-->", start)
            position = end + 3 if end >= 0 else len(markup)
            continue
        tag = _TAG.match(markup, start)
        if not tag:
            end = markup.find(">", start) if markup[start + 1 : start + 2] in ("!", "?") else start
            if end == start and not unseen and start < len(markup):
                page.write("<")
            position = max(end, start) + 1
            continue
        position = tag.end()
        name, closes = tag[1].lower(), markup[start + 1] == "/"
        if unseen:
            if name == unseen:
                inside += -1 if closes else 1
                unseen = unseen if inside else ""
        elif not closes and (name in _UNSEEN or (name in _BLOCKS | {"span"} and _HIDDEN.search(tag[2]))):
            unseen, inside = ("", 0) if name == "br" else (name, 1)
        else:
            _show(page, name, closes, tag[2])
    page.end_line()
    return re.sub(r"\n{3,}", "\n\n", "\n".join(page.lines)).strip("\n")


def _show(page: _Page, name: str, closes: bool, attributes: str) -> None:
    if name in _BLOCKS:
        if "".join(page.line).strip() or name == "br":
            page.end_line()
        if name == "blockquote":
            page.depth = max(0, page.depth + (-1 if closes else 1))
        elif name == "pre":
            page.pre = max(0, page.pre + (-1 if closes else 1))
    elif name in ("td", "th"):
        page.line.append(" ")
    elif name == "a" and not closes and (link := _HREF.search(attributes)):
        page.line.append(f"<{html.unescape(link[1])}> ")
