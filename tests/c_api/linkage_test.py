#!/usr/bin/env python3
"""Looks at what the C library exports and what it and its programs need.    linkage_test.py LIBRARY PROGRAM..."""

import re
import subprocess
import sys


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    library, programs = sys.argv[1], sys.argv[2:]
    problems = []
    exported = re.findall(r"^\S*\s+[A-Z]\s+(\S+)$", run("nm", "-D", "--defined-only", library), re.MULTILINE)
    names = [name for name in exported if not name.startswith("PIRN_")]
    for name in names:
        if not re.fullmatch(r"pirn_[a-z_]+@@PIRN_\d+\.\d+", name):
            problems.append(f"exports {name}")
    if "pirn_resume@@PIRN_0.1" not in names:
        problems.append("does not export pirn_resume")
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
