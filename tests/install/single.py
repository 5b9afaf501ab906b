"""The single header: a program of two files is compiled with it alone, runs, and links nothing else."""

import argparse
import subprocess
import sys
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--cxx", required=True)
parser.add_argument("--dir", type=Path, required=True)
parser.add_argument("--source", type=Path, required=True)
options = parser.parse_args()

options.dir.mkdir(parents=True, exist_ok=True)
here = options.source / "tests/install/single"
subprocess.run([sys.executable, options.source / "tools/amalgamate.py", options.dir / "pirn.hpp"], check=True)
program = options.dir / "single"
subprocess.run([options.cxx, "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-fstack-clash-protection", f"-I{options.dir}",
                here / "main.cpp", here / "other.cpp", "-pthread", "-o", program], check=True)
subprocess.run([program], check=True)
