#!/usr/bin/env python3
"""Shows where generators break that share the stack pointer with their consumer (the form of Li and others, "Stackful
Coroutine Made Fast"), by each compiler at each level, and that pirn's do not.

    in_stack_experiment.py [COMPILER...]

The test fails if one of pirn's generators breaks, if the form no longer breaks where docs/generators.md says that it
does, or if it breaks where it should work, so that the experiment shows nothing.
"""

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
COMPILERS = ("clang++-22", "g++-12")
LEVELS = ("-O0", "-O2", "-O3")
FORMS = ("in-stack", "frame", "stack")
CASES = ("plain", "calls", "calls-from-a-fixed-frame", "deep", "nested", "consumer-allocates", "interleaved")
ALWAYS_BROKEN = ("interleaved", "consumer-allocates")
# Where the form works: nothing interleaves, the consumer has a frame pointer, and the body no variables below sp.
WORKS = {("clang++-22", "-O2", case) for case in ("plain", "deep", "nested")}


def build(folder: str, compiler: str, level: str) -> Path | str:
    """Returns the program, or what the compiler says."""
    program = Path(folder) / f"{Path(compiler).name}{level}"
    sources = [HERE / "in_stack_experiment.cpp", *(ROOT / "src/stack" / name for name in ("stack.cpp", "address_space.cpp"))]
    made = subprocess.run([compiler, "-std=c++20", level, *(f"-I{ROOT / name}" for name in (".", "include", "src")),
                           *map(str, sources), "-o", str(program), "-pthread"], capture_output=True, text=True)
    return program if made.returncode == 0 else made.stderr[-3000:]


def outcome(program: Path, form: str, case: str) -> str:
    try:
        status = subprocess.run([str(program), form, case], capture_output=True, timeout=20).returncode
    except subprocess.TimeoutExpired:
        return "hangs"
    return {0: "right", 1: "wrong"}.get(status, "crashes" if status < 0 else f"status {status}")


def main(compilers: list[str]) -> int:
    found = [name for name in compilers or COMPILERS if shutil.which(name)]
    if not found:
        print("no compiler is installed")
        return SKIPPED
    good = True
    with tempfile.TemporaryDirectory(prefix="pirn-in-stack-") as folder:
        columns = [(compiler, level) for compiler in found for level in LEVELS]
        with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
            programs = dict(zip(columns, pool.map(lambda column: build(folder, *column), columns)))
        for column, program in programs.items():
            if isinstance(program, str):
                print(*column, program)
                return 1
        for form in FORMS:
            print(f"{form:27}" + "".join(f"{compiler + ' ' + level:>16}" for compiler, level in columns))
            for case in CASES:
                seen = {column: outcome(programs[column], form, case) for column in columns}
                wanted = {column: "right" if form != "in-stack" or (*column, case) in WORKS else
                          "broken" if case in ALWAYS_BROKEN else "" for column in columns}
                wrong = [column for column in columns if wanted[column] and
                         (seen[column] == "right") != (wanted[column] == "right")]
                good = good and not wrong
                print(f"  {case:25}" + "".join(f"{seen[column]:>16}" for column in columns) +
                      (f"   FAILED: {wrong}" if wrong else ""))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
