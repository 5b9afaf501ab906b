#!/usr/bin/env python3
"""Builds generator_robustness.cpp by each compiler at each level and runs it.    generator_robustness_test.py [COMPILER...]"""

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SKIPPED = 77
LEVELS = ("-O0", "-O1", "-O2 -fno-omit-frame-pointer -fcf-protection=full", "-O3", "-O1 -g -fsanitize=address",
          "-O2 -fsanitize=address")


def build_and_run(folder, compiler, level):
    program = str(Path(folder) / f"{compiler}{level.replace(' ', '')}")
    sources = [str(HERE / "generator_robustness.cpp"), *(str(ROOT / "src/stack" / name)
                                                         for name in ("stack.cpp", "address_space.cpp"))]
    command = [compiler, "-std=c++20", *level.split(), f"-I{ROOT}/include", f"-I{ROOT}/tests", f"-I{ROOT}/src", *sources]
    made = subprocess.run([*command, "-o", program, "-pthread"], capture_output=True, text=True)
    if made.returncode:
        return False, made.stderr[-3000:]
    try:
        ran = subprocess.run([program], capture_output=True, text=True, timeout=20)
    except subprocess.TimeoutExpired:
        return False, "it hangs"
    return ran.returncode == 0, ran.stdout + ran.stderr


def main():
    compilers = [name for name in sys.argv[1:] or ["clang++-22", "g++-12"] if shutil.which(name)]
    if not compilers:
        print("no compiler is installed")
        return SKIPPED
    good = True
    with tempfile.TemporaryDirectory(prefix="pirn-robust-") as folder:
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
