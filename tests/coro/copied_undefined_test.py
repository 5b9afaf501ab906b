#!/usr/bin/env python3
"""Builds copied_undefined.cpp with UndefinedBehaviorSanitizer alone, by each compiler at each level, and runs it: with
AddressSanitizer other code copies small images."""

import sys
from pathlib import Path

import by_each_compiler

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

if __name__ == "__main__":
    sys.exit(by_each_compiler.run([], ("-O0", "-O2"), [
        "-std=c++20", "-g1", "-fsanitize=undefined", "-fno-sanitize-recover=all",
        *(f"-I{ROOT / name}" for name in ("include", "src")), str(HERE / "copied_undefined.cpp"),
        *(str(ROOT / "src/stack" / name) for name in ("stack.cpp", "address_space.cpp"))], timeout=60))
