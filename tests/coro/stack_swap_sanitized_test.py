#!/usr/bin/env python3
"""Builds a program, and all of the library that it needs, with AddressSanitizer by each compiler at each level, and
runs it.

    stack_swap_sanitized_test.py SOURCE...    paths from the root; a C source is compiled as C++
"""

import sys
from pathlib import Path

import by_each_compiler

ROOT = Path(__file__).resolve().parents[2]

if __name__ == "__main__":
    sys.exit(by_each_compiler.run([], ("-O0", "-O1", "-O2", "-O3"), [
        "-std=c++20", "-g1", "-w", "-fsanitize=address", "-D_GNU_SOURCE", "-DPIRN_TEST_SANITIZED",
        *(f"-I{ROOT / name}" for name in ("include", "src", "compat")),
        "-x", "c++", *(str(ROOT / name) for name in sys.argv[1:])], timeout=60))
