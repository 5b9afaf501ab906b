#!/usr/bin/env python3
"""Builds usched_ring.c in the ways in which a program may be built, against the headers and an existing library, and
runs it.

    usched_matrix.py LIBRARY...   each a shared or a static library
"""

import itertools
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import which

HERE = Path(__file__).resolve().parent
COMPAT = HERE.parents[1] / "compat"
COMPILERS = ["gcc-12", "clang-22"]
LEVELS = ["-O0", "-O1", "-O2", "-O3"]
PROTECTORS = ["-fno-stack-protector", "-fstack-protector-strong", "-fstack-protector-all"]
FORMS = {"rr": [1, 2, 4], "SINGLE_THREAD": [1], "LOCAL": [1, 3]}
# Threads in a cycle, cycles, rounds, additional bytes in each frame.
RINGS = ["8 2 500 0", "8 60 50 1000", "2 200 20 10000", "5 1 200 100"]
SKIPPED = 77


def attempt(task):
    """Returns a description of the failure, or an empty string."""
    (compiler, level, protector, form, library), folder = task
    program = Path(folder) / f"{compiler}{level}{protector}-{form}-{Path(library).name}"
    command = [compiler, "-std=gnu99", "-Wall", "-Wextra", "-Werror", level, protector, f"-D{form}", f"-I{COMPAT}",
               str(HERE / "usched_ring.c"), library, f"-Wl,-rpath,{Path(library).parent}", "-lpthread", "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return f"{' '.join(command)}\n{done.stderr[-2000:]}"
    for ring, natives in itertools.product(RINGS, FORMS[form]):
        try:
            done = subprocess.run([program, *ring.split(), str(natives)], capture_output=True, text=True, timeout=120)
        except subprocess.TimeoutExpired:
            return f"{' '.join(command)}\nhangs with {ring} {natives}"
        if done.returncode != 0:
            return f"{' '.join(command)}\nends with {done.returncode} for {ring} {natives}\n{done.stderr[-2000:]}"
    program.unlink()
    return ""


def main():
    compilers = [name for name in COMPILERS if which(name)]
    for name in COMPILERS:
        if name not in compilers:
            print(f"skipped: builds with {name}, which is not installed")
    if not compilers:
        return SKIPPED
    builds = list(itertools.product(compilers, LEVELS, PROTECTORS, FORMS, sys.argv[1:]))
    with tempfile.TemporaryDirectory(prefix="pirn-usched-") as folder, ThreadPoolExecutor(2) as pool:
        problems = [problem for problem in pool.map(attempt, ((build, folder) for build in builds)) if problem]
    for problem in problems[:5]:
        print(problem)
    print(f"{len(builds)} builds, {len(problems)} failed")
    return 1 if problems or not builds else 0


if __name__ == "__main__":
    sys.exit(main())
