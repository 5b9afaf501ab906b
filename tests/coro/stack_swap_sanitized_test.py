#!/usr/bin/env python3
"""Builds a program and all of the library that it needs with AddressSanitizer, by each compiler at each level, and runs it.

    stack_swap_sanitized_test.py SOURCE...    paths from the root; one of C is compiled as C++
"""

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = 77
COMPILERS = ("clang++-22", "g++-12")
LEVELS = ("-O0", "-O1", "-O2", "-O3")


def build_and_run(folder, compiler, level):
    program = str(Path(folder) / f"{compiler}{level}")
    includes = [f"-I{ROOT / name}" for name in ("include", "src", "compat")]
    sources = ["-x", "c++", *(str(ROOT / name) for name in sys.argv[1:])]
    command = [compiler, "-std=c++20", level, "-g1", "-w", "-fsanitize=address", "-D_GNU_SOURCE", "-DPIRN_TEST_SANITIZED"]
    made = subprocess.run([*command, *includes, *sources, "-o", program, "-pthread"], capture_output=True, text=True)
    if made.returncode:
        return False, made.stderr[-3000:]
    try:
        ran = subprocess.run([program], capture_output=True, text=True, errors="replace", timeout=60)
    except subprocess.TimeoutExpired:
        return False, "it hangs"
    return ran.returncode == 0, ran.stdout + ran.stderr[:3000]


def main():
    compilers = [name for name in COMPILERS if shutil.which(name)]
    if not compilers:
        print("no compiler is installed")
        return SKIPPED
    good = True
    with tempfile.TemporaryDirectory(prefix="pirn-swap-") as folder:
        builds = [(compiler, level) for compiler in compilers for level in LEVELS]
        with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
            for build, (fine, output) in zip(builds, pool.map(lambda build: build_and_run(folder, *build), builds)):
                good = good and fine
                print(f"{'ok    ' if fine else 'FAILED'} {' '.join(build)}")
                if not fine:
                    print(output)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
