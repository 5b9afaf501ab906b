"""The pages and headers as Doxygen is to read them. No line moves, so that its warnings name the lines of ours."""

import html
import re
from dataclasses import dataclass, field
from pathlib import Path

# The target of a link in a page, and the heading there.
LINK = re.compile(r"(?<=\]\()([^)\s#:]*)(#[^)\s]*)?(?=\))")
CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
HEADING = re.compile(r"^(#{1,6}) +(.+?) *$")
# Headers of which nothing is public: the switches of each instruction set, the seam to the platform, and macros. From
# the other headers below detail/ public classes inherit.
NOT_PUBLIC = re.compile(r"^include/pirn/(context/arch(_fiber|/[\w/]+)?|context/detail/(call_sites|open_blocks)|detail/(platform|abi)\w*)\.hpp$")
FRIEND = re.compile(r"^ *(?:template <[^;{}]*>\s*)?friend [^;{}]*;", re.M)


@dataclass
class Staged:
    pages: list[Path] = field(default_factory=list)  # the README first, then as it names them
    others: list[Path] = field(default_factory=list)  # what they link to


def stage(root: Path, into: Path) -> Staged:
    """Copies what the site is made of."""
    staged = Staged()
    names = page_names(root)
    for name in names:
        staged.pages.append(write(into / name, page(root, name, names, staged.others)))
    for path in sorted((root / "include").rglob("*.h*")):
        name = path.relative_to(root).as_posix()
        if not NOT_PUBLIC.match(name):
            write(into / name, header(name, path.read_text(encoding="utf-8")))
    return staged


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


# --- pages ------------------------------------------------------------------------------------------------------------


def page_names(root: Path) -> list[str]:
    """The pages as they are read: the README, those that it names, and the rest of docs/."""
    named = re.findall(r"(?<=\]\()[\w/]+\.md(?=[#)])", (root / "README.md").read_text(encoding="utf-8"))
    rest = sorted(path.relative_to(root).as_posix() for path in (root / "docs").glob("*.md"))
    return list(dict.fromkeys(["README.md", *sorted(named, key=lambda name: "/" not in name), *rest]))


def page(root: Path, name: str, names: list[str], others: list[Path]) -> str:
    """A page with an anchor at each heading, and its links to the pages and headings as Doxygen has them. Files that it
    links to and that are no pages are added to `others`; their copies lie beside the pages."""

    def target(match: re.Match) -> str:
        path = (root / name).parent.joinpath(match.group(1)).resolve() if match.group(1) else root / name
        found = path.relative_to(root).as_posix() if path.is_relative_to(root) else ""
        if found in names:
            return f"#{anchor(found, (match.group(2) or '')[1:])}"
        if path.is_file() and path.suffix != ".svg":  # Doxygen copies pictures by itself
            others.extend([path] if path not in others else [])
            return f"./{path.name}"  # a word without a dot or slash is no link to Doxygen
        return match.group(0)

    lines = []
    fenced = False
    for line in (root / name).read_text(encoding="utf-8").split("\n"):
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        if not fenced and not fence:
            heading = HEADING.match(line)
            line = CODE.sub(plain_code, LINK.sub(target, line))
            if heading:
                level, text = heading.groups()
                line = f"{line} {{#{anchor(name, slug(text) if len(level) > 1 else '')}}}"
        lines.append(line)
    return "\n".join(lines)


def anchor(page_name: str, heading: str) -> str:
    """A name of a heading that no other page has; without one, of the page."""
    stem = Path(page_name).stem.lower()
    return f"page-{stem}" + (f"-{heading}" if heading else "")


def slug(heading: str) -> str:
    """The part of a link to a heading that GitHub has behind the #."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def plain_code(span: re.Match) -> str:
    """Code spelled so that Doxygen sees no open quotation in it, no request of a link in `::name`, and its end before a '."""
    text = span.group(1)
    if text.count('"') % 2 == 0 and not re.search(r"(?<![\w:>])::\w", text) and not span.string.startswith("'", span.end()):
        return span.group()
    text = html.escape(text).replace("::", r"\::")
    return f"<code>{text}</code>"


# --- headers ----------------------------------------------------------------------------------------------------------


def header(name: str, text: str) -> str:
    """A header with a comment of its file, examples marked, and what is in a namespace detail hidden."""
    text = FRIEND.sub(lambda match: "\n" * match.group().count("\n"), text)  # Doxygen would list them as related
    lines = text.split("\n")
    if "/detail/" not in name:
        describe_file(lines)
    hide_detail(lines)
    mark_examples(lines)
    lines = [CODE.sub(plain_code, line) if re.match(r" *///", line) else line for line in lines]
    # The base of a class as Doxygen can find it: by name, and not a specialization.
    text = re.sub(r"^(class \w+_base)<.*> \{$", r"\1 {", "\n".join(lines), flags=re.M)
    return re.sub(r"detail::base_of<(\w+)<(.*?)>>::type", r"detail::\1_base<\2>", text)


def describe_file(lines: list[str]) -> None:
    """Makes the comment at the beginning one that Doxygen takes for the file's."""
    if lines[0].startswith("/* "):
        lines[0] = "/** " + lines[0][3:]
        end = next(i for i, line in enumerate(lines) if line.rstrip().endswith("*/"))
        lines[end] = lines[end].replace("*/", r"\file */")
        return
    end = next((i for i, line in enumerate(lines) if not line.startswith("//")), 0)
    for i in range(end):
        lines[i] = "/" + lines[i]
    if end:
        lines[end - 1] += r" \file"


def hide_detail(lines: list[str]) -> None:
    """Leaves of a namespace detail its classes, from which public ones may inherit, and without comments, so that Doxygen
    shows only the functions that they hand down."""
    inside = kept = False
    for i, line in enumerate(lines):
        inside = in_detail(inside, line)
        if not inside or line.startswith(("namespace ", "#")):
            continue
        if re.match(r"(?:class|struct) ", line) and not line.endswith(";"):
            kept = True
        elif not kept and not re.match(r"template <|  requires\b", line):
            lines[i] = ""
        elif re.match(r" +(?:class|struct|union|enum)\b", line):
            uncomment_above(lines, i)
        lines[i] = lines[i].replace(" protected:", " private:")
        kept = kept and not lines[i].startswith("}")
        if not kept and re.match(r"template <|  requires\b", line) and not is_of_class(lines, i):
            lines[i] = ""


def is_of_class(lines: list[str], at: int) -> bool:
    """Whether the template head in a line is that of a class."""
    while re.match(r"template <|  requires\b", lines[at]):
        at += 1
    return bool(re.match(r"(?:class|struct) [^;]*$", lines[at]))


def uncomment_above(lines: list[str], at: int) -> None:
    """Makes plain comments of those above a declaration."""
    while re.match(r" +(?:template <|requires\b|///)", lines[at - 1]):
        at -= 1
        lines[at] = lines[at].replace("///", "//", 1)


def in_detail(inside: bool, line: str) -> bool:
    """Whether the lines after this one are in a namespace detail."""
    return bool(re.match(r"namespace (?:\w+::)*detail \{", line)) or (inside and not re.match(r"\}  // namespace (?:\w+::)*detail", line))


def mark_examples(lines: list[str]) -> None:
    """An indented part of a comment, between two empty lines of it, is code."""
    for i, line in enumerate(lines):
        head = re.match(r"( *///| \*)$", line)
        if not head or i + 1 == len(lines) or not lines[i + 1].startswith(head.group(1) + "   "):
            continue
        end = next(j for j in range(i + 1, len(lines)) if not lines[j].startswith(head.group(1) + "   "))
        lines[i] += r" \code{.cpp}"
        if lines[end] == head.group(1):
            lines[end] += r" \endcode"
        else:
            lines[end - 1] += r" \endcode"
