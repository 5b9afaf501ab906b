"""Tables of the docs that list the members of a type: all of them, in its order, with its defaults."""

import re

from tree import Tree, without_comments

# Above such a table. Its first column has the members in backquotes; one that is called "default" has their defaults.
MARK = re.compile(r"^<!-- members of: (\S+) (\w+) -->\s*\n((?:^\|.*\n)+)", re.M)
UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "ms": 1, "s": 1000, "us": 0.001}
CHRONO = {"microseconds": 0.001, "milliseconds": 1, "seconds": 1000}


def members_of(text: str, name: str) -> dict[str, str | None] | None:
    """The public members of a struct or class, each with its initializer, if it has one. None: there is no such type."""
    text = without_comments(text, keep_strings=True)
    found = re.search(rf"^(struct|class) {name}\b[^;{{]*\{{", text, re.M)
    if not found:
        return None
    public, members, statement, depth = found.group(1) == "struct", {}, "", 0
    for token in re.findall(r'"(?:\\.|[^"\\])*"|.|\n', text[found.end():]):
        depth += (token == "{") - (token == "}")
        if depth < 0:
            break
        statement += token
        access = re.fullmatch(r"\s*(public|private|protected):", statement)
        if access:
            public, statement = access.group(1) == "public", ""
        elif depth == 0 and (token == ";" or (token == "}" and re.search(r"\)[\w\s]*\{", statement))):
            if public:
                note(statement, name, members)
            statement = ""
    return members


def note(statement: str, type_name: str, members: dict[str, str | None]) -> None:
    plain = re.sub(r"\[\[[^\]]*\]\]", "", " ".join(statement.split()))
    while (shorter := re.sub(r"<[^<>]*>", "", plain)) != plain:
        plain = shorter
    if not plain.strip(" ;") or re.match(r"\s*(friend|using|static_assert|template|struct|class|enum)\b", plain):
        return
    before, equals, after = plain.rstrip("; ").partition("=")
    function = re.search(r"(operator\S+|~?\w+)\s*\(", before)
    if function:
        if function.group(1).lstrip("~") != type_name and not function.group(1).startswith("operator"):
            members.setdefault(function.group(1), None)
        return
    braces = re.search(r"\{(.*)\}\s*$", before)
    last = re.search(r"(\w+)\s*(?:\{.*)?$", before)
    if last:
        members[last.group(1)] = after.strip() if equals else braces.group(1) if braces else None


def value_of(initializer: str) -> float | str | None:
    """What a number, a duration, a bool or a string is; None for anything else, which a table says in its own words."""
    if initializer in ("true", "false") or initializer.startswith('"'):
        return initializer
    if duration := re.fullmatch(r"std::chrono::(\w+)[({](\d+)[)}]", initializer):
        return int(duration.group(2)) * CHRONO.get(duration.group(1), 0)
    product = re.sub(r"std::size_t\{(\d+)\}", r"\1", initializer).replace("'", "")
    if re.fullmatch(r"\d+( (\*|<<) \d+)?", product):
        left, _, right = product.partition(" ")
        return int(left) * int(right[2:]) if right.startswith("*") else int(left) << int(right[3:]) if right else int(left)
    return None


def shown_as(cell: str) -> float | str:
    """The value in a cell, before anything in parentheses."""
    cell = cell.split(" (")[0].strip().strip("`")
    number = re.fullmatch(r"([\d,]+)(?: (\w+))?(?:/s)?", cell)
    if number:
        return int(number.group(1).replace(",", "")) * UNITS.get(number.group(2) or "", 1)
    return cell


def tables(tree: Tree) -> list[str]:
    """A table below `members of` has all members of the type, in its order, and the defaults that it has."""
    findings = []
    for path in (p for p in tree.paths if p.endswith(".md")):
        text = tree.text(path)
        for match in MARK.finditer(text):
            header, name, table = match.groups()
            title = f"{path}:{text.count(chr(10), 0, match.start()) + 1}: the members of {name}"
            members = members_of(tree.text(header), name) if header in tree.paths else None
            if members is None:
                findings.append(f"{title}: {header} has no such type")
                continue
            rows = [[cell.strip() for cell in row.strip().strip("|").split("|")] for row in table.splitlines()]
            column = rows[0].index("default") if "default" in rows[0] else None
            named = [(re.findall(r"`(\w+)", row[0]), row) for row in rows[2:]]
            listed = list(dict.fromkeys(each for names, _ in named for each in names))
            if listed != list(members):
                findings.append(f"{title}: the table has {', '.join(listed)}; {header} has {', '.join(members)}")
            for names, row in named if column is not None else []:
                known = value_of(members.get(names[0]) or "") if len(names) == 1 else None
                if known is not None and shown_as(row[column]) != known:
                    findings.append(f"{title}: the default of {names[0]} is {members[names[0]]}, not {row[column]}")
    return findings
