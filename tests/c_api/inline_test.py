#!/usr/bin/env python3
"""Builds inline.c and inline_there.c by each compiler that is installed, as C11 and as C++20, at several levels, without a
warning, and runs them. The two are also mixed: by two compilers, one with and one without a frame pointer.

The library that it is linked with is compiled by the same compiler, as a part of the program.
"""

import itertools
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

    def run(compilations, library):
        """Builds a program of compilations, each a command and its source, and runs it. The first command links."""
        nonlocal tried, failures
        tried += 1
        objects = []
        for command, source in compilations:
            objects.append(f"{folder}/{source}.o")
            done = subprocess.run([*command, *WARNINGS, f"-I{ROOT}/include", "-c", str(HERE / source), "-o", objects[-1]],
                                  capture_output=True, text=True)
            if done.returncode != 0:
                break
        if done.returncode == 0:
            program = f"{folder}/inline"
            done = subprocess.run([compilations[0][0][0], *objects, *map(str, library), "-pthread", "-o", program], capture_output=True,
                                  text=True)
        if done.returncode == 0:
            done = subprocess.run([program], capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            failures += 1
            wrong = [line for line in done.stdout.splitlines() if not line.startswith("ok ")]
            print(f"FAILED {[' '.join(command) for command, _ in compilations]}: {wrong or done.stderr[:1500]}")

    with tempfile.TemporaryDirectory(prefix="pirn-inline-") as folder:
        library = [Path(folder) / f"{name}.o" for name in ("c_api", "c_stack")]
        compilers = [pair for pair in COMPILERS if all(map(shutil.which, pair))]
        for c, cxx in compilers:
            for part in library:
                subprocess.run([cxx, *OF_LIBRARY, f"-I{ROOT}/include", f"-I{ROOT}/src", "-c",
                                str(ROOT / f"src/coro/c_api/{part.stem}.cpp"), "-o", str(part)], check=True)
            for flags in BUILDS:
                if "-march=x86-64-v4" in flags and not has_avx512():
                    continue
                for language in ([c, "-std=c11"], [cxx, "-std=c++20", "-x", "c++"]):
                    run([([*language, *flags], "inline.c"), ([*language, *flags], "inline_there.c")], library)
        frames = (["-O2", "-fomit-frame-pointer"], ["-O2", "-fno-omit-frame-pointer"])
        for (c, _), (other, _) in itertools.product(compilers, compilers):
            for flags, others in (frames, frames[::-1]):
                run([([c, "-std=c11", *flags], "inline.c"), ([other, "-std=c11", *others], "inline_there.c")], library)
    print(f"{tried - failures} of {tried} programs as they should be")
    return failures != 0 if tried else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
