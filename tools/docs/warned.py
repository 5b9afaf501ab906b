"""What Doxygen warns of, without what needs no comment; and the types of which it does not."""

import re
from pathlib import Path

import staging

UNDOCUMENTED = re.compile(r"(?P<path>[^:]+):(?P<line>\d+): warning: (?:Member (?P<what>.+) \((?P<kind>[a-z ]+)\)|Compound (?P<compound>.+)) "
                          r"(?:of [a-z]+ (?P<scope>.+) )?is not documented\.$")
# Types that concepts and traits of the standard library ask for, and functions that every range has.
ASKED_FOR = {"typedef": {"value_type", "difference_type", "iterator_category", "iterator_concept", "pointer", "reference", "promise_type", "id"},
             "function": {"begin", "end", "swap"}}


def findings(log: str, stage: Path) -> list[str]:
    """One for each warning. A line that continues one is part of it."""
    warnings = re.sub(r"\n(?![^\s:]+:\d+: |warning: |error: )", " ", log.strip("\n")).split("\n")
    return list(dict.fromkeys(line for line in warnings if line and not needs_no_comment(line, stage)))


def needs_no_comment(warning: str, stage: Path) -> bool:
    """Whether a warning is about an internal or trivial declaration, or an overload that shares a comment."""
    found = UNDOCUMENTED.match(warning)
    if not found:
        return False
    scope = found["scope"] or found["compound"]
    if re.search(r"\bdetail\b", scope):
        return True
    if not found["what"]:
        return False
    if found["kind"] == "macro definition" or re.match(r"(\w+)\(.*\) -> \1\b", found["what"]):
        return True  # a macro without a comment is not the user's, and a deduction guide is explained by its class
    called = re.match(r"(operator\W*?(?: \w.*?)?|[~\w]+)\(", found["what"])
    name = called.group(1) if called and found["kind"] == "function" else found["what"]
    of = re.sub(r"<.*", "", scope).rsplit("::", 1)[-1]
    if name in ASKED_FOR.get(found["kind"], ()) or of == "iterator":
        return True
    if found["kind"] == "function" and name in (of, "operator=") and copies_or_moves(found["what"], of):
        return True
    text = (stage / found["path"]).read_text(encoding="utf-8").split("\n")
    return found["kind"] == "function" and is_overload(text, int(found["line"]) - 1, name)


def copies_or_moves(what: str, of: str) -> bool:
    """Whether it is X(), X(X&&) or the like: the comment of the class says whether it can be moved, and what is empty."""
    return bool(re.search(rf"\((?:|(?:const )?{of}(?:<.*>)? ?&{{0,2}}\w*)\)[^()]*$", what))


def is_overload(lines: list[str], at: int, name: str) -> bool:
    """Whether the comment of another declaration of the name, with no empty line between, is its comment too."""
    for i in range(at - 1, -1, -1):
        if not lines[i].strip():
            return False
        if re.match(r"\s*///", lines[i]):
            return any(re.search(rf"(?<![\w.>]){re.escape(name)} ?\(", line) for line in lines[i + 1:at])
    return False


def types_without_comment(name: str, text: str) -> list[str]:
    """The public types of a staged header that have none: Doxygen leaves them out without a word."""
    lines = text.split("\n")
    findings = []
    inside = public = False  # a namespace detail; the part of a class
    for i, line in enumerate(lines):
        inside = staging.in_detail(inside, line)
        label = re.match(r" (public|protected|private):", line)
        if label or re.match(r"class |struct |\}", line):
            public = line.startswith((" public:", "struct "))
        type_of = re.match(r"( *)(?:class|struct|union|enum)\b(?! std::)[^;()]*\{", line)
        if inside or not type_of or len(type_of.group(1)) > (2 if public else 0):
            continue
        above = i - 1
        while re.match(r" *(?:template <|requires\b|// NOLINT)", lines[above]):
            above -= 1
        if not lines[above].lstrip().startswith("///"):
            findings.append(f"{name}:{i + 1}: a public type without a comment: {line}")
    return findings
