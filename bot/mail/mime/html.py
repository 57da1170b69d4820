"""HTML to the plain text that its reader sees: nothing in it is executed, and quotes stay quotes.

Lexbor parses it, as a browser would; what is hidden is left out.
"""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX = 2_000_000  # characters
_BLOCKS = frozenset(
    "br p div tr li ul ol table h1 h2 h3 h4 h5 h6 blockquote pre hr section article header footer".split()  # noqa: SIM905
)
_UNSEEN = frozenset("script style head template noscript title textarea select svg math iframe object".split())  # noqa: SIM905
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)
# An HTML parser looks through all open elements at each of these, which takes square time when they are never closed.
_NESTING = re.compile(
    r"<(/?)(?:div|blockquote|ul|ol|dl|section|article|aside|nav|main|header|footer|center|fieldset|details|figure|address"
    r"|dir|menu|summary|pre|listing)\b",
    re.I,
)
_DEEPEST = 5000
_LINK = re.compile(r"https?://[^\s\"'<>]{3,500}", re.I)
_MOST_QUOTES = 20


class _Page:
    """The text so far: finished lines, the current line, and the depth of quotes and of preformatted text."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.line: list[str] = []
        self.depth = 0
        self.pre = 0

    def write(self, text: str) -> None:
        if not self.pre:
            self.line.append(re.sub(r"[ \t\r\n\f]+", " ", text))
            return
        first, *rest = text.split("\n")
        self.line.append(first)
        for each in rest:
            self.end_line()
            self.line.append(each)

    def end_line(self) -> None:
        text = "".join(self.line)
        self.lines.append("> " * min(self.depth, _MOST_QUOTES) + (text.rstrip() if self.pre else text.strip()))
        self.line = []

    def open(self, node: LexborNode, name: str) -> None:
        """An element begins."""
        if name in _BLOCKS:
            self._end_block(name)
            self.depth += name == "blockquote"
            self.pre += name == "pre"
        elif name in ("td", "th"):
            self.line.append(" ")
        elif name == "a" and (link := _LINK.match((node.attributes.get("href") or "").strip())):
            self.line.append(f"<{link[0]}> ")

    def close(self, name: str) -> None:
        """An element ends."""
        if name in _BLOCKS and name not in ("br", "hr"):
            self._end_block(name)
            self.depth -= name == "blockquote"
            self.pre -= name == "pre"

    def _end_block(self, name: str) -> None:
        if name == "br" or any(each.strip() for each in self.line):
            self.end_line()
        self.line.clear()


def as_text(markup: str) -> str:
    """Return plain text: one line per block, `> ` before the lines of a blockquote, and links in angle brackets."""
    page = _Page()
    root = LexborHTMLParser(_cut(markup[:MAX])).root
    if root is not None:
        _walk(root, page)
    page.end_line()
    return re.sub(r"\n{3,}", "\n\n", "\n".join(page.lines)).strip("\n")


def _cut(markup: str) -> str:
    """Return the markup up to where it is nested too deeply."""
    depth = 0
    for tag in _NESTING.finditer(markup):
        depth = max(0, depth - 1) if tag[1] else depth + 1
        if depth > _DEEPEST:
            return markup[: tag.start()]
    return markup


def _walk(root: LexborNode, page: _Page) -> None:
    """Visit all nodes in document order, without recursion: a mail may nest as deeply as it likes."""
    node: LexborNode | None = root
    while node is not None:
        name = node.tag or ""
        if name == "-text":
            page.write(node.text_content or "")
        seen = not name.startswith(("-", "_", "!")) and name not in _UNSEEN and not _is_hidden(node)
        if seen:
            page.open(node, name)
            if node.child is not None:
                node = node.child
                continue
            page.close(name)
        while node.next is None:
            parent = node.parent
            if parent is None or parent.mem_id == root.mem_id:
                return
            page.close(parent.tag or "")
            node = parent
        node = node.next


def _is_hidden(node: LexborNode) -> bool:
    """Return whether an element hides its content: by style, or by the attribute of that name."""
    attributes = node.attributes
    return "hidden" in attributes or bool(_HIDDEN_STYLE.search(attributes.get("style") or ""))
