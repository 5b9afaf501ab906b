"""Builds a program by each compiler at each level and runs it."""

import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SKIPPED = 77
COMPILERS = ("clang++-22", "g++-12")


def run(compilers: list[str], levels: tuple[str, ...], arguments: list[str], timeout: int) -> int:
    """Returns the status of a test: whether each program that `COMPILER LEVEL arguments` makes is built and ends with 0
    within `timeout` seconds. Skipped without a compiler."""
    found = [name for name in compilers or COMPILERS if shutil.which(name)]
    if not found:
        print("no compiler is installed")
        return SKIPPED

    def build_and_run(folder: str, compiler: str, level: str) -> tuple[bool, str]:
        program = str(Path(folder) / f"{Path(compiler).name}{level.replace(' ', '')}")
        made = subprocess.run([compiler, *level.split(), *arguments, "-o", program, "-pthread"], capture_output=True,
                              text=True)
        if made.returncode:
            return False, made.stderr[-3000:]
        try:
            ran = subprocess.run([program], capture_output=True, text=True, errors="replace", timeout=timeout)
        except subprocess.TimeoutExpired:
            return False, "it hangs"
        return ran.returncode == 0, ran.stdout + ran.stderr[:3000]

    good = True
    with tempfile.TemporaryDirectory(prefix="pirn-built-") as folder:
        builds = [(compiler, level) for compiler in found for level in levels]
        with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
            for build, (fine, output) in zip(builds, pool.map(lambda build: build_and_run(folder, *build), builds)):
                good = good and fine
                print(f"{'ok    ' if fine else 'FAILED'} {' '.join(build)}")
                if not fine:
                    print(output)
    return 0 if good else 1
