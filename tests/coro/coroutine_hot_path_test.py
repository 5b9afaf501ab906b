#!/usr/bin/env python3
"""Looks at the machine code of loops over coroutines and jobs of a pool: no call, no more tests than documented, the peer
in registers, and a coroutine that is created, run and destroyed is entered by a direct jump.    coroutine_hot_path_test.py [-v] [COMPILER...]
"""

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "context"))
from disassembly import forbidden, functions, loop_of, report, run  # noqa: E402

# Function (a pattern) -> the most instructions and conditional jumps of its hot loop. The jumps of resume: begun? in
# flight? tagged? and the loop's own; of yield: running here? in flight? tagged? Of a pool's start: an idle one? in
# flight? ended? by return? and the loop's own; of a job's resume: a job? running? in flight? ended? and the loop's own.
LOOPS = {
    r"^resume_all$": (34, 4),
    r"^resume_both$": (60, 7),  # as two of the first: no word of one switch is kept over the other
    r"count_up": (30, 4),
    r"^create_run_destroy$": (47, 8),  # one test reads the word at the stack's end, two check for bodies in frames
    r"^start_jobs$": (42, 5),
    r"^resume_jobs$": (36, 5),
    r"^_ZN4pirn.*8pool_jobI.*start_endless_job.*5enter": (30, 4),
}
SWITCH = re.compile(r"(?:notrack )?jmp[a-z]*\s+(?:\*|[0-9a-f]+ <.*land)")
CONDITIONAL = "j(?!mp)[a-z]+"  # the end of a loop that jumps over no cold code
BRANCH = re.compile(rf"{CONDITIONAL}\s")


def check(compiler, level, folder):
    found = functions(compiler, [level, "-fno-pie"], HERE / "coroutine_hot_path.cpp", folder)
    good = True
    for pattern, (most, max_branches) in LOOPS.items():
        if compiler.startswith("g++") and pattern == r"^start_jobs$":
            continue  # gcc lays this loop out in pieces
        if compiler.startswith("g++") and pattern == r"^create_run_destroy$":
            if level == "-O3":
                continue  # gcc lays this loop out in pieces there
            most += 8
        loops = [loop_of(code, SWITCH, CONDITIONAL) for name, code in found.items() if re.search(pattern, name)]
        loop = next(filter(None, loops), [])
        wrong = forbidden(loop)
        branches = sum(bool(BRANCH.match(line)) for line in loop)
        fine = loop and not wrong and len(loop) <= most and branches <= max_branches
        good &= report(fine, f"{compiler} {level} {pattern}: {len(loop)} instructions, at most {most}; {branches} branches, "
                       f"at most {max_branches}; forbidden: {', '.join(wrong) or 'none'}", loop)
    return good


if __name__ == "__main__":
    sys.exit(run(check))
