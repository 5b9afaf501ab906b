"""Editors and indexers see what is defined here: Universal Ctags, on which many are built, is asked."""

import re
import subprocess

from tree import Tree, without_comments

LEAST_VISIBLE = 0.9
HEAD_END = re.compile(r"[;{}]|\b(?:public|private|protected)\s*:")
TYPE = re.compile(r"\b(?:class|struct|union|enum(?:\s+class)?)\s+(?:alignas\((?:[^()]|\([^()]*\))*\)\s*|PIRN_\w+\s+|\[\[.*?\]\]\s*)*(\w+)[^()=]*$", re.S)
NO_NAME_OF_A_FUNCTION = {"alignas", "alignof", "asm", "catch", "decltype", "for", "if", "noexcept", "requires", "return", "sizeof", "switch", "void", "while",
                         "defined", "__attribute__"}


def definitions(text: str) -> list[str]:
    """The names of the types and functions that a file defines outside functions, as far as braces and brackets show them."""
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", "", without_comments(text), flags=re.M)
    names = []
    scopes = []  # True for a namespace or a type, in which there are definitions
    head = 0
    for match in HEAD_END.finditer(text):
        if match.group() == "{":
            scopes.append(opens_scope(text[head:match.start()], names) if all(scopes) else False)
        elif match.group() == "}" and scopes:
            scopes.pop()
        head = match.end()
    return names


def opens_scope(head: str, names: list[str]) -> bool:
    """Whether definitions stand behind a brace with these words before it. Adds what the brace itself begins to define."""
    head = re.sub(r"\[\[.*?\]\]", "", head, flags=re.S)
    if re.search(r"\bnamespace\b|\bextern\s+\"\"\s*$", head):
        return True
    found = TYPE.search(re.sub(r"^\s*template\s*<.*?>\s*(?=class|struct|union)", "", head, flags=re.S))
    if found:
        names.append(found.group(1))
        return True
    function = next((m.group(1) for m in re.finditer(r"([A-Za-z_]\w*)\s*\(", head) if m.group(1) not in NO_NAME_OF_A_FUNCTION
                     and not m.group(1).startswith("PIRN_")), None)
    if function and not re.search(r"\boperator\b", head):
        names.append(function)
    return False


def visible(tree: Tree) -> list[str]:
    files = tree.cxx("include", "src")
    listed = subprocess.run(["ctags", "--languages=C++", "--langmap=C++:.h.hpp.cpp", "--fields=", "-f", "-", *files],
                            cwd=tree.root, capture_output=True, text=True)
    if listed.returncode:
        return [f"ctags: {listed.stderr.strip()}"]
    seen = {tuple(line.split("\t")[:2]) for line in listed.stdout.splitlines()}
    defined = [(name, path) for path in files for name in definitions(tree.text(path))]
    hidden = [(name, path) for name, path in defined if (name, path) not in seen]
    if len(hidden) <= (1 - LEAST_VISIBLE) * len(defined):
        return []
    return [f"ctags sees {len(defined) - len(hidden)} of {len(defined)} definitions, less than {LEAST_VISIBLE:.0%}",
            *(f"{path}: {name} is not seen" for name, path in hidden[:20])]
