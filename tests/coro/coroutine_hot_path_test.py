#!/usr/bin/env python3
"""Looks at the machine code of loops over coroutines: no call, no more tests than documented, the peer in registers, and
a coroutine that is created, run and destroyed is entered by a direct jump.    coroutine_hot_path_test.py [COMPILER...]

    -v prints the loops
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from generator_hot_path_test import FORBIDDEN, HERE, ROOT, SKIPPED, functions

# Function (a pattern) -> the most instructions and conditional jumps of its hot loop. The jumps of resume: begun? in
# flight? flagged? and the loop's own; of yield: running here? in flight? flagged?
LOOPS = {
    r"^resume_all$": (34, 4),
    r"count_up": (30, 4),
    r"^create_run_destroy$": (46, 7),
}
SWITCH = re.compile(r"(?:notrack )?jmp[a-z]*\s+(?:\*|[0-9a-f]+ <.*land)")
BRANCH = re.compile(r"j(?!mp)[a-z]+\s")


def hot_loop(code):
    """The shortest loop that holds a switch and runs over no cold code: from the target of a conditional jump backward to it."""
    loops = []
    for index, (_, text) in enumerate(code):
        jump = re.match(r"j(?!mp)[a-z]+\s+(?:0x)?([0-9a-f]+)\b", text)
        if jump and code[0][0] <= int(jump[1], 16) <= code[index][0]:
            body = [line for at, line in code[: index + 1] if at >= int(jump[1], 16)]
            if any(SWITCH.match(line) for line in body):
                loops.append(body)
    return min(loops, key=len, default=[])


def main():
    arguments = [each for each in sys.argv[1:] if each != "-v"]
    compilers = [name for name in arguments or ["clang++-22", "g++-12"] if shutil.which(name)]
    if not compilers or not shutil.which("objdump"):
        print("no compiler or no objdump")
        return SKIPPED
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for compiler in compilers:
            for level in ("-O2", "-O3"):
                made = Path(folder) / "hot_path.o"
                subprocess.run([compiler, level, "-std=c++20", "-fno-pie", f"-I{ROOT}/include", "-c",
                                HERE / "coroutine_hot_path.cpp", "-o", made], check=True)
                listing = subprocess.run(["objdump", "-d", "-C", "--no-show-raw-insn", made], check=True, text=True,
                                         capture_output=True).stdout
                found = functions(listing)
                for pattern, (most, most_branches) in LOOPS.items():
                    loop = next((hot_loop(code) for name, code in found.items()
                                 if re.search(pattern, name) and hot_loop(code)), [])
                    wrong = [line for line in loop if FORBIDDEN.search(line)]
                    branches = sum(bool(BRANCH.match(line)) for line in loop)
                    fine = bool(loop) and not wrong and len(loop) <= most and branches <= most_branches
                    good = good and fine
                    print(f"{'ok    ' if fine else 'FAILED'} {compiler} {level} {pattern}: {len(loop)} instructions, at "
                          f"most {most}; {branches} branches, at most {most_branches}; forbidden: "
                          f"{', '.join(wrong) or 'none'}")
                    if not fine or "-v" in sys.argv:
                        print("\n".join("       " + line for line in loop))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
