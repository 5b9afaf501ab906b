"""Whether the links of a folder of HTML pages lead anywhere."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The targets that a page names, and the anchors that it has."""

    def __init__(self, text: str):
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name in ("href", "src", "data"):
                self.targets.append(value)
            if value and (name == "id" or (tag == "a" and name == "name")):
                self.anchors.add(value)


def broken(folder: Path) -> list[str]:
    """The links to a file that is not there, or to an anchor that its page has not."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}
    findings = []
    for path, page in pages.items():
        for target in dict.fromkeys(page.targets):
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue  # of the web, or a script
            to = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not to.exists():
                findings.append(f"{path.name}: no such file: {target}")
            elif parts.fragment and to in pages and unquote(parts.fragment) not in pages[to].anchors:
                findings.append(f"{path.name}: no such place: {target}")
    return findings


def unlink(folder: Path, part: str) -> None:
    """Makes plain text of each link to a page that is not there and has `part` in its name."""

    def text(match: re.Match) -> str:
        return match.group() if (folder / match.group(1)).exists() else match.group(2)

    link = re.compile(rf'<a [^>]*href="([^"#]*{re.escape(part)}[^"#]*)[^"]*"[^>]*>(.*?)</a>')
    for path in folder.rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        changed = link.sub(text, page)
        if changed != page:
            path.write_text(changed, encoding="utf-8")
