"""The known faults of this folder, read and applied.

tests/faults/<layer>/<source>.toml holds the faults of include/pirn/<layer>/[detail/]<source>.hpp and
src/<layer>/<source>.cpp, or of a file in another folder of the tree, whose name then takes the place of the layer:

    source = "src/sync/actor.cpp"             the edited file, where an edit names none

    [[fault]]
    name = "actor_close_wakes_nobody"
    why = "what a user would have met"
    test = "sync_actor_test"                  the ctest entry that must fail
    find = 'sleeper_.wake();'                 occurs exactly once in the file
    replace = ''

    preset = "asan-ubsan"                     optional, dev by default
    target = "pirn_libraries"                 optional: built before the test, by default the target of its name
    shows = 'regular expression'              optional: the failing test must print this
    timeout = 10                              optional: seconds after which a hang counts as red, 60 by default
    alone = true                              optional: the test notices reliably only on an otherwise idle machine
    file = "include/pirn/sync/actor.hpp"      optional: the edited file, source by default

A fault of several edits has a table [[fault.edit]] with find, replace and file for each.
"""

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

KEYS = {"name": str, "why": str, "test": str, "preset": str, "target": str, "shows": str, "timeout": int, "alone": bool}
EDIT_KEYS = ("file", "find", "replace")


@dataclass
class Edit:
    file: str
    find: str
    replace: str


@dataclass
class Fault:
    place: str  # <layer>/<source>
    name: str = ""
    why: str = ""
    test: str = ""
    preset: str = "dev"
    target: str = ""
    shows: str = ""
    timeout: int = 60
    alone: bool = False
    edits: list[Edit] = field(default_factory=list)

    @property
    def title(self) -> str:
        return f"{self.place}/{self.name}"

    def apply(self, root: Path) -> dict[str, str]:
        """Returns the edited files of the tree at `root` by name. A ValueError names a text that does not occur exactly
        once."""
        originals: dict[str, str] = {}
        spans: dict[str, list[tuple[int, int, str]]] = {}
        for edit in self.edits:
            if edit.file not in originals:
                try:
                    originals[edit.file] = (root / edit.file).read_text(encoding="utf-8")
                except OSError as error:
                    raise ValueError(f"{self.title}: {edit.file} cannot be read: {error.strerror}") from error
            text = originals[edit.file]
            begin = text.find(edit.find)
            if begin < 0 or text.find(edit.find, begin + 1) >= 0:
                times = "is not there" if begin < 0 else "occurs more than once"
                raise ValueError(f"{self.title}: {edit.file}: this text {times}: {edit.find.strip()!r}")
            spans.setdefault(edit.file, []).append((begin, begin + len(edit.find), edit.replace))
        edited = {}
        for name, places in spans.items():
            text, end = "", 0
            for begin, behind, replacement in sorted(places):
                if begin < end:
                    raise ValueError(f"{self.title}: {name}: two edits overlap")
                text += originals[name][end:begin] + replacement
                end = behind
            edited[name] = text + originals[name][end:]
            if edited[name] == originals[name]:
                raise ValueError(f"{self.title}: {name}: the edit changes nothing")
        return edited


def place_of(file: str) -> str:
    """Returns <layer>/<source> of a file of the tree, where the faults that edit it are stored."""
    parts = file.removeprefix("include/pirn/").removeprefix("src/").split("/")
    return f"{parts[0]}/{parts[-1].split('.')[0]}" if len(parts) > 1 else parts[0].split(".")[0]


def read_file(path: Path, folder: Path) -> list[Fault]:
    """Returns the faults of one file. A ValueError names what is wrong with it."""
    place = str(path.relative_to(folder).with_suffix(""))
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error
    source = document.get("source")
    if not isinstance(source, str) or set(document) != {"source", "fault"}:
        raise ValueError(f"{place}: needs a source and tables [[fault]], and nothing else")
    if place_of(source) != place:
        raise ValueError(f"{place}: the faults of {source} stand in {place_of(source)}.toml")
    return [read_fault(entry, place, source) for entry in document["fault"]]


def read_fault(entry: dict, place: str, source: str) -> Fault:
    name = entry.get("name")
    for key in ("name", "why", "test"):
        if not entry.get(key):
            raise ValueError(f"{place}/{name}: a fault needs {key}")
    if not re.fullmatch(r"[a-z0-9_]+", name):
        raise ValueError(f"{place}/{name}: a name has small letters, digits and _")
    fault = Fault(place)
    single = {key: entry.pop(key) for key in EDIT_KEYS if key in entry}
    edits = entry.pop("edit", [single])
    if (single and edits != [single]) or not all({"find", "replace"} <= set(e) <= set(EDIT_KEYS) and e["find"] for e in edits):
        raise ValueError(f"{place}/{name}: needs find and replace, or tables [[fault.edit]] that have them")
    for key, value in entry.items():
        if not isinstance(value, KEYS.get(key, ())):
            raise ValueError(f"{place}/{name}: {key} is no key of a fault, or its value is of another kind")
        setattr(fault, key, value)
    fault.target = fault.target or fault.test
    fault.edits = [Edit(e.get("file", source), e["find"], e["replace"]) for e in edits]
    if place not in {place_of(edit.file) for edit in fault.edits}:
        raise ValueError(f"{place}/{name}: edits nothing that belongs here")
    return fault


def read_all(folder: Path) -> tuple[list[Fault], list[str]]:
    """Returns all faults below `folder`, and the errors in the files."""
    faults: dict[str, Fault] = {}
    problems = []
    for path in sorted(folder.rglob("*.toml")):
        try:
            for fault in read_file(path, folder):
                first = faults.setdefault(fault.name, fault)
                if first is not fault:
                    problems.append(f"{fault.title}: {first.title} has the same name")
        except ValueError as error:
            problems.append(str(error))
    return list(faults.values()), problems
