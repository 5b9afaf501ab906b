#!/usr/bin/env python3
"""Counts the cache lines that a suspension and the continuation of the same fiber touch: cache_lines.cpp has so many
fibers that each of them is out of the cache when its turn comes, so the lines are the misses that cachegrind counts. And
the instructions of a yield.

    cache_lines_test.py PROGRAM
"""

import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FEWER, MORE = 8000, 24000
# The most lines of a turn. The context and the links of a fiber lie in one line of its control block, which is all that
# a yield touches where nothing is live over it. A wait touches the line behind it, and one or two of the stack, for the
# wait's record and the words that are live. A wait_queue is in a line of its own, a channel in two.
MOST = {"yield": 1.7, "mutex": 5.7, "wait_queue": 4.7, "channel": 6.8}
MOST_INSTRUCTIONS = {"yield": 36}  # ticks come by the clock, more often on a slow machine


def count(program: str, kind: str, turns: int, folder: str) -> tuple[int, int]:
    """Returns misses and instructions."""
    out = Path(folder) / f"{kind}-{turns}"
    subprocess.run(["valgrind", "--tool=cachegrind", "--cache-sim=yes", "--D1=32768,8,64", f"--cachegrind-out-file={out}",
                    program, kind, str(turns)], check=True, capture_output=True, timeout=300)
    text = out.read_text()
    names = re.search(r"^events: (.*)$", text, re.MULTILINE)[1].split()
    totals = dict(zip(names, map(int, re.search(r"^summary:? (.*)$", text, re.MULTILINE)[1].split())))
    return totals["D1mr"] + totals["D1mw"], totals["Ir"]


def main() -> int:
    if not shutil.which("valgrind"):
        print("valgrind is not installed")
        return 77
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        runs = {(kind, turns): pool.submit(count, sys.argv[1], kind, turns, folder) for kind in MOST for turns in (FEWER, MORE)}
        counted = {key: run.result() for key, run in runs.items()}
    good = True
    for kind, most in MOST.items():
        lines, instructions = ((more - fewer) / (MORE - FEWER) for more, fewer in zip(counted[kind, MORE], counted[kind, FEWER]))
        limit = MOST_INSTRUCTIONS.get(kind, float("inf"))
        fine = lines <= most and instructions <= limit
        good &= fine
        print(f"{'ok    ' if fine else 'FAILED'} {kind}: {lines:.2f} cache lines a turn, at most {most}; {instructions:.1f} "
              f"instructions, at most {limit}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
