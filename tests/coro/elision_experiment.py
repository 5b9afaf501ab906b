#!/usr/bin/env python3
"""Shows what an optimizer makes of generators that are elided into the loops of their consumers, in the form of
elision_experiment.cpp: one is the plain loop, two in turn are not. docs/generators.md says why pirn's plugin does not elide.

    elision_experiment.py [-v] [COMPILER...]
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "context"))
from disassembly import PADDING, functions, report, run  # noqa: E402

# The function, the loop that does the same, and whether it has as few instructions.
PAIRS = (("one_yield", "plain", True), ("filtered", "plain_filtered", None), ("two_in_turn", "plain_in_turn", False))


def check(compiler, level, folder):
    found = functions(compiler, [level], HERE / "elision_experiment.cpp", folder)
    size = {name: sum(not PADDING.match(line) for _, line in code) for name, code in found.items()}
    good = True
    for elided, plain, wanted in PAIRS:
        fine = wanted is None or (size[elided] <= size[plain] + 2) == wanted
        good &= report(fine, f"{compiler} {level} {elided}: {size[elided]} instructions, {plain}: {size[plain]}",
                       [line for _, line in found[elided]])
    return good


if __name__ == "__main__":
    if not [name for name in sys.argv[1:] if name != "-v"]:
        sys.argv.append("clang++-22")
    sys.exit(run(check))
