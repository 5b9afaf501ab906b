#!/usr/bin/env python3
"""Checks the exports of the C library and the needs of the library and its programs.

    linkage_test.py NAMES LIBRARY PROGRAM...

NAMES is a regular expression for the exports, up to the number of its version."""

import re
import subprocess
import sys


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    expected, library, programs = sys.argv[1], sys.argv[2], sys.argv[3:]
    problems = []
    exported = re.findall(r"^\S*\s+[A-Z]\s+(\S+)$", run("nm", "-D", "--defined-only", library), re.MULTILINE)
    names = [name for name in exported if not name.startswith("PIRN_")]
    for name in names:
        if not re.fullmatch(expected + r"\d+\.\d+", name):
            problems.append(f"exports {name}")
    if not names:
        problems.append("exports nothing")
    for path in (library, *programs):
        needed = re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-d", path))
        print(path, "needs", ", ".join(needed))
        problems += [f"{path} needs {name}" for name in needed if re.match(r"libstdc\+\+|libc\+\+|libunwind", name)]
    print(len(names), "functions exported")
    for problem in problems:
        print("FAILED:", problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
