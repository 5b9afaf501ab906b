#!/usr/bin/env python3
"""Builds inline.c by each compiler that is installed, as C11 and as C++20, at several levels, without a warning, and runs it.

The library that it is linked with is compiled by the same compiler, as a part of the program.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SKIPPED = 77
COMPILERS = [("clang-22", "clang++-22"), ("clang-19", "clang++-19"), ("gcc-12", "g++-12")]
BUILDS = [["-O0"], ["-O2"], ["-O3", "-fPIC"], ["-O2", "-fno-omit-frame-pointer", "-fcf-protection=full"], ["-O3", "-march=x86-64-v4"]]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
# No C++ runtime.
OF_LIBRARY = ["-std=c++20", "-O2", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-fasynchronous-unwind-tables"]


def has_avx512():
    return " avx512vl " in Path("/proc/cpuinfo").read_text()


def main():
    tried = failures = 0
    with tempfile.TemporaryDirectory(prefix="pirn-inline-") as folder:
        library, program = Path(folder) / "c_api.o", Path(folder) / "inline"
        for c, cxx in COMPILERS:
            if not shutil.which(c) or not shutil.which(cxx):
                continue
            includes = [f"-I{ROOT}/include", f"-I{ROOT}/src"]
            subprocess.run([cxx, *OF_LIBRARY, *includes, "-c", str(ROOT / "src/coro/c_api/c_api.cpp"), "-o", str(library)],
                           check=True)
            for flags in BUILDS:
                if "-march=x86-64-v4" in flags and not has_avx512():
                    continue
                for language in ([c, "-std=c11"], [cxx, "-std=c++20", "-x", "c++"]):
                    command = [*language, *WARNINGS, *flags, includes[0], str(HERE / "inline.c"), "-x", "none", str(library),
                               "-pthread", "-o", str(program)]
                    done = subprocess.run(command, capture_output=True, text=True)
                    if done.returncode == 0:
                        done = subprocess.run([str(program)], capture_output=True, text=True, timeout=60)
                    tried += 1
                    if done.returncode != 0:
                        failures += 1
                        wrong = [line for line in done.stdout.splitlines() if not line.startswith("ok ")]
                        print(f"FAILED {' '.join([*language, *flags])}: {wrong or done.stderr[:1500]}")
    print(f"{tried - failures} of {tried} programs as they should be")
    return failures != 0 if tried else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
