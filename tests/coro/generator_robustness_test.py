#!/usr/bin/env python3
"""Builds generator_robustness.cpp by each compiler at each level and runs it.    generator_robustness_test.py [COMPILER...]"""

import sys
from pathlib import Path

import by_each_compiler

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LEVELS = ("-O0", "-O1", "-O2 -fno-omit-frame-pointer -fcf-protection=full", "-O3", "-O1 -g -fsanitize=address",
          "-O2 -fsanitize=address")

if __name__ == "__main__":
    sys.exit(by_each_compiler.run(sys.argv[1:], LEVELS, [
        "-std=c++20", *(f"-I{ROOT / name}" for name in ("include", "tests", "src")),
        str(HERE / "generator_robustness.cpp"),
        *(str(ROOT / "src/stack" / name) for name in ("stack.cpp", "address_space.cpp"))], timeout=20))
