"""Comments and messages read as the rest of the field writes them: the first rules of prose, as a list of words and phrases."""

import re

from tree import Tree

COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/', re.S)
# What a comment or a message must not say, and what is wrong with it.
NO_NOUN = "the subject of a sentence is a noun: a fiber, a worker, a caller, a waiter"
FORBIDDEN = [
    (re.compile(r"\b(who|whoever|whom|whose turn|nobody|somebody|anybody|everybody)\b", re.I), NO_NOUN),
    (re.compile(r"(?:^|[.:;] )(What|The one|Those|That which)\b(?! (?:is|are)\b[^.]*\?)"), NO_NOUN),
    (re.compile(r"(?:^|\. )(The same|As above|Both)\b"), "name the other declaration, and the difference"),
    (re.compile(r"\b(for good|but for|in vain|go(?:es)? on|went on|going on|so many|is none|are none|told of|lets? go|of its own|"
                r"of their own|by itself|by themselves|how manieth)\b", re.I), "write it plainly"),
]
NO_HEAD = "opens without a comment that says what it holds"


def comments(text: str):
    """(line, text) of each run of comment lines, without their marks and with what is in backticks left out."""
    last, begin, parts = -2, 0, []
    for match in COMMENT.finditer(text):
        token = match.group()
        if token[0] in "\"'":
            continue
        line = text.count("\n", 0, match.start()) + 1
        body = " ".join(re.sub(r"^(//[/!<]*|/\*+)|\*+/$", "", token).split())
        alone = not text[text.rfind("\n", 0, match.start()) + 1:match.start()].strip()
        if not (alone and line == last + 1):
            if parts:
                yield begin, " ".join(parts)
            begin, parts = line, []
        parts.append(body)
        last = line if alone else -2
    if parts:
        yield begin, " ".join(parts)


def messages(text: str):
    """(line, text) of each run of adjacent string literals that has at least three words. Escapes count as blanks."""
    begin, last, joined = 0, None, ""
    for match in [*COMMENT.finditer(text), None]:
        if match is None or joined and text[last:match.start()].strip():
            said = re.sub(r"\\.", " ", joined)
            if " " in joined and len(re.findall(r"[A-Za-z']{2,}", said)) >= 3:
                yield begin, " ".join(said.split())
            joined = ""
        if match is not None:
            if match.group()[0] == '"':
                begin = begin if joined else text.count("\n", 0, match.start()) + 1
                joined += match.group()[1:-1]
            last = match.end()


def prose(tree: Tree) -> list[str]:
    findings = []
    for path in tree.cxx("include", "src", "compiler"):
        text = tree.text(path)
        for line, said in [*comments(text), *messages(text)]:
            said = re.sub(r"`[^`]*`|\"[^\"]*\"|NOLINT\S*", "_", said)
            for pattern, reason in FORBIDDEN:
                for match in pattern.finditer(said):
                    findings.append(f"{path}:{line}: {match.group().strip()!r}: {reason}")
        if path.endswith(".cpp") and not text.startswith(("//", "/*")):
            findings.append(f"{path}: {NO_HEAD}")
    return findings
