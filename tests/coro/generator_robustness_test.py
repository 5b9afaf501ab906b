#!/usr/bin/env python3
"""Builds generator_robustness.cpp by each compiler at each level and runs it.
    generator_robustness_test.py [--all] [COMPILER...]"""

import sys
from pathlib import Path

import by_each_compiler

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LEVELS = ("-O1", "-O2 -fno-omit-frame-pointer -fcf-protection=full", "-O2 -fsanitize=address")
MORE = ("-O0", "-O3", "-O1 -g -fsanitize=address")

if __name__ == "__main__":
    everything = sys.argv[1:2] == ["--all"]
    sys.exit(by_each_compiler.run(sys.argv[1 + everything :], LEVELS + (MORE if everything else ()), [
        "-std=c++20", *(f"-I{ROOT / name}" for name in ("include", "tests", "src")),
        str(HERE / "generator_robustness.cpp"),
        *(str(ROOT / "src/stack" / name) for name in ("stack.cpp", "address_space.cpp"))], timeout=20))
