"""Writes context, stack and coro as one header: `amalgamate.py FILE`. ./dev release makes it, tests/install tries it.

A program includes it anywhere; one of its files first defines PIRN_IMPLEMENTATION, and then also gets the sources. A
header that is reached inside a condition (the file of an instruction set, and the headers that only that file includes)
is inserted wherever it is reached, behind its own guard. All others are inserted once.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LAYERS = ("detail", "context", "stack", "coro")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')
# Explorations replace the code behind the platform seam, which one header cannot offer.
NOT_IN_ONE_HEADER = {"pirn/detail/platform_checked.hpp": "pirn: programs of pirn::sim need the library, not the single header"}


class Amalgamation:
    def __init__(self, root: Path):
        self.root = root
        self.once: set[str] = set()  # headers inserted unconditionally
        self.lines: list[str] = []

    def find(self, name: str, by: str) -> Path:
        for folder in ("include", "src"):
            if (self.root / folder / name).is_file():
                return self.root / folder / name
        raise SystemExit(f"amalgamate: {by} includes {name}, which is not there")

    def header(self, name: str, by: str = "the list of layers", branch: set[str] | None = None) -> None:
        """`branch` holds the headers already inserted in the condition in which the header is reached, None outside of
        conditions."""
        if name in self.once or (branch is not None and name in branch):
            return
        if name in NOT_IN_ONE_HEADER:
            self.lines.append(f'#error "{NOT_IN_ONE_HEADER[name]}"')
            return
        guard = "PIRN_SINGLE_" + re.sub(r"\W", "_", name).upper()
        self.lines += [f"#ifndef {guard}", f"#define {guard}"]
        (self.once if branch is None else branch).add(name)
        self.text(self.find(name, by), name, branch)
        self.lines.append("#endif")

    def text(self, path: Path, name: str, branch: set[str] | None) -> None:
        depth = 0  # of the conditions of this file
        own_branch = None
        for line in path.read_text(encoding="utf-8").split("\n"):
            directive = re.match(r"^\s*#\s*(if|endif|el)", line)
            if directive:
                depth += {"if": 1, "endif": -1, "el": 0}[directive.group(1)]
                own_branch = set() if depth else None
            if included := INCLUDE.match(line):
                self.header(included.group(1), name, own_branch if branch is None else branch)
            elif not re.match(r"^\s*#\s*pragma once", line):
                self.lines.append(line)

    def source(self, path: Path) -> None:
        self.text(path, str(path.relative_to(self.root / "src")), None)


def amalgamate(root: Path) -> str:
    version = re.search(r"VERSION ([\d.]+)", (root / "CMakeLists.txt").read_text()).group(1)
    made = Amalgamation(root)
    made.lines += [f"// pirn {version}: context, stack and coro in one header. Made of pirn's sources; do not edit it.",
                   "// One file of a program defines PIRN_IMPLEMENTATION before it includes this.",
                   "// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception", "#pragma once"]
    for name in ("types", "operands"):  # else they would be inserted once for each instruction set
        made.header(f"pirn/context/arch/shared/{name}.hpp")
    for layer in LAYERS:
        folder = root / "include/pirn" / layer
        for path in sorted(folder.glob("*.hpp")) + sorted(folder.glob("expert/*.hpp")):
            name = str(path.relative_to(root / "include"))
            # Fibers are not in it. The files of other builds and libraries are reached through platform.hpp and abi.hpp.
            if not re.match(r"(arch_|platform_|abi_)", path.name):
                made.header(name)
    made.lines.append("#ifdef PIRN_IMPLEMENTATION")
    for layer in LAYERS:
        for path in sorted((root / "src" / layer).glob("*.cpp")):
            made.source(path)
    made.lines += ["#endif  // PIRN_IMPLEMENTATION", ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(made.lines))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: amalgamate.py FILE")
    Path(sys.argv[1]).write_text(amalgamate(ROOT), encoding="utf-8")
