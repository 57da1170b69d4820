"""Hooks for the build by ProperDocs: pages from the root, reference from code, wide tables."""

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# ProperDocs loads this file by its path, before Django is set up.
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tracker.settings")

import django  # noqa: E402
from properdocs.config.defaults import ProperDocsConfig  # noqa: E402
from properdocs.exceptions import PluginError  # noqa: E402
from properdocs.structure.files import File, Files  # noqa: E402
from properdocs.structure.pages import Page  # noqa: E402

_FROM_THE_ROOT = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md", "SECURITY.md": "security.md"}
_MARK = re.compile(r"^<!-- reference: ([\w ]+) -->$", re.M)
_STYLES = ("perfwork.css", "favicon.svg")


def on_startup(**_: Any) -> None:
    django.setup()


def on_files(files: Files, config: ProperDocsConfig) -> Files:
    """Add the pages from the repository's root, with their links rewritten for docs/."""
    for name, page in _FROM_THE_ROOT.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        text = re.sub(r"\]\(docs/([^)]*)\)", r"](\1)", text)
        for other, target in _FROM_THE_ROOT.items():
            text = text.replace(f"]({other})", f"]({target})")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Replace each mark with the reference it names. Raises PluginError if there is no such reference."""
    from bot.documentation import PARTS  # only once Django is set up

    for name in _MARK.findall(markdown):
        if name not in PARTS:
            raise PluginError(f"{page.file.src_uri}: there is no reference named {name!r}: use {', '.join(PARTS)}")
    return _MARK.sub(lambda match: PARTS[match[1]](), markdown)


def on_page_content(html: str, config: ProperDocsConfig, **_: Any) -> str:
    """Make wide tables and code scroll separately, by keyboard and on phones; as files, drop links into Perfwork."""
    if not config.extra["home"]:
        html = re.sub(r'<a href="/[^"]*">(.*?)</a>', r"\1", html)
    html = html.replace("<table>", '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>')
    return html.replace("</table>", "</table></div>").replace("<pre>", '<pre tabindex="0">')


def on_post_build(config: ProperDocsConfig) -> None:
    for name in _STYLES:
        shutil.copyfile(ROOT / "static" / name, Path(config.site_dir) / name)
