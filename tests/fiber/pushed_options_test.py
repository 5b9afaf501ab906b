#!/usr/bin/env python3
"""Builds pushed_arguments_test.cpp with options that change a function's frame, and runs it: the switches of fibers and
fork2 are inlined there.    pushed_options_test.py [--all] COMPILER ARGUMENT...

The arguments are for the linker: GoogleTest and the layers, built by the same compiler."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "coro"))
import by_each_compiler  # noqa: E402

QUICK = ["-Oz", "-O2"]
CLANG = ["-O1 -finstrument-functions"]
GCC = ["-O2 --coverage"]
ALL = ["-O0", "-O1", "-Os", "-O3", "-O2 -fno-omit-frame-pointer", "-O2 -fcf-protection=full", "-O2 -finstrument-functions",
       "-O2 -fprofile-generate", "-Os --coverage", "-O0 --coverage", "-Os -mcmodel=large -fuse-ld=bfd"]

if __name__ == "__main__":
    arguments = sys.argv[1:]
    everything = arguments[0] == "--all"
    compiler, *linking = arguments[everything:]
    levels = QUICK + (GCC if "g++" in Path(compiler).name and "clang" not in compiler else CLANG) + (ALL if everything else [])
    sys.exit(by_each_compiler.run([compiler], tuple(levels), [
        "-std=c++23", f"-I{ROOT / 'include'}", f"-I{ROOT / 'tests'}", "-isystem", "/usr/src/googletest/googletest/include",
        str(HERE / "pushed_arguments_test.cpp"), *linking], timeout=60))
