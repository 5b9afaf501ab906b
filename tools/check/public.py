"""The types that a user of pirn may meet: docs/types.md lists each, and says which are for experts.

`python3 tools/check/public.py` writes the page anew.
"""

import re
from pathlib import Path

from tree import LAYERS, Tree, layer_of, without_comments

PAGE = "docs/types.md"
MAX_TYPES = 111  # outside expert/
TOKEN = re.compile(r"[;{}]")
OPENS_NAMESPACE = re.compile(r"\bnamespace\s+([\w:]*)\s*$|\bnamespace\s*$")
ATTRIBUTES = re.compile(r"\[\[.*?\]\]|\balignas\((?:[^()]|\([^()]*\))*\)|\bPIRN_\w+(?:\([^)]*\))?", re.S)
TYPE = re.compile(r"(?:class|struct|union|enum(?:\s+class)?)\s+(\w+)")
ALIAS = re.compile(r"using\s+(\w+)\s*=")
OURS = re.compile(r"pirn(::(http|local|sim|this_fiber|this_stack|co|rpc))?")
HEAD = """# Types

Every public type and the header that defines it, layer by layer. [concepts.md](concepts.md) explains the two dozen that
carry the examples. The headers in a folder `expert/` are for writers of primitives, allocators and language runtimes, and
for tuning: a program can do without them.

This page is made by `tools/check/public.py` from the headers' own comments; `./dev check` compares the two.
"""


class Public:
    """A type: its name as a user writes it, its header, and the first sentence that the header says of it."""

    def __init__(self, name: str, header: str, about: str):
        self.name, self.header, self.about = name, header, about
        self.expert = "/expert/" in header


def without_templates(head: str) -> str:
    """The head of a declaration without the lists of template parameters before it."""
    while match := re.match(r"\s*template\s*<", head):
        depth, at = 1, match.end()
        while depth and at < len(head):
            depth += (head[at] == "<") - (head[at] == ">" and head[at - 1] != "-")
            at += 1
        head = head[at:]
        head = re.sub(r"^\s*requires\b.*?(?=\b(?:class|struct|union|using)\b)", "", head, flags=re.S)
    return head.strip()


def declared(head: str, opens: bool) -> str | None:
    """The type that a declaration with this head names: one that a brace opens, or an alias."""
    found = (TYPE if opens else ALIAS).match(without_templates(ATTRIBUTES.sub("", head)))
    return found.group(1) if found else None


def first_sentence(lines: list[str], number: int) -> str:
    """Of the doc comment that ends above this line."""
    said = []
    while number > 0 and re.match(r"\s*(///|template\s*<|requires\b|//\s*NOLINT)", lines[number - 1]):
        number -= 1
        if lines[number].lstrip().startswith("///"):
            said.insert(0, lines[number].lstrip()[3:].strip())
    text = " ".join(said)
    end = re.search(r"(?<!e\.g)(?<!i\.e)[.;:](?=\s|$)", text)
    return (text[:end.start()] if end else text).replace("|", "\\|").strip()


def types_of(text: str, header: str) -> list[Public]:
    lines = text.split("\n")
    plain = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group()),
                   without_comments(text), flags=re.M)
    plain = re.sub(r"\bPIRN_ABI_NAMESPACE_(BEGIN|END)\b", lambda m: " " * len(m.group()), plain)
    scopes: list[str | None] = []  # a namespace's name; None for any other brace
    found, head = [], 0
    for match in TOKEN.finditer(plain):
        opens, before = match.group() == "{", plain[head:match.start()]
        if None not in scopes and OURS.fullmatch("::".join(s for s in scopes if s)):
            named = declared(before, opens)
            if named:
                name = "::".join([*(s for s in scopes if s), named]).removeprefix("pirn::")
                line = plain[:head + len(before) - len(before.lstrip())].count("\n")
                if name not in [each.name for each in found]:
                    found.append(Public(name, header, first_sentence(lines, line)))
        if opens:
            namespace = OPENS_NAMESPACE.search(before)
            scopes.append((namespace.group(1) or "") if namespace else None)
        elif match.group() == "}" and scopes:
            scopes.pop()
        head = match.end()
    return found


def all_types(tree: Tree) -> list[Public]:
    seen: dict[str, Public] = {}
    for path in tree.cxx("include"):
        for each in types_of(tree.text(path), path.removeprefix("include/")):
            seen.setdefault(each.name, each)
    order = [*LAYERS[1:], "sim", "detail"]
    return sorted(seen.values(), key=lambda t: (order.index(layer_of("include/" + t.header) or "sim"), t.header, t.name))


def page(types: list[Public]) -> str:
    text = HEAD
    for title, expert in (("Types", False), ("Types in expert/", True)):
        chosen = [each for each in types if each.expert == expert]
        text += f"\n## {title if expert else 'For every program'}\n\n| type | header | what it is |\n|---|---|---|\n"
        text += "".join(f"| `{each.name}` | `{each.header}` | {each.about} |\n" for each in chosen)
    return text


def documented(tree: Tree) -> list[str]:
    """Each type has a doc comment, and there are not too many for one person to know."""
    types = all_types(tree)
    plain = [each.name for each in types if not each.expert]
    findings = [f"{each.header}: {each.name} has no doc comment" for each in types if not each.about]
    if len(plain) > MAX_TYPES:
        findings.append(f"{len(plain)} public types outside expert/, more than {MAX_TYPES}")
    return findings


def listed(tree: Tree) -> list[str]:
    if PAGE in tree.paths and tree.text(PAGE) == page(all_types(tree)):
        return []
    return [f"{PAGE}: not what the headers say; python3 tools/check/public.py writes it"]


def public(tree: Tree) -> list[str]:
    return documented(tree) + listed(tree)


if __name__ == "__main__":
    here = Tree(Path(__file__).resolve().parents[2])
    (here.root / PAGE).write_text(page(all_types(here)))
