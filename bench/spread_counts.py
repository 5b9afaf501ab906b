#!/usr/bin/env python3
"""The spread-counts workload: the instructions that a yield of spread/IMPL executes with the chain of calls around it,
the size of the code of that chain, and the bytes that a fiber keeps at the yield: spread_counts.py IMPL.

callgrind counts instructions in two runs with different numbers of yields, so that the beginning and the end of a
program cancel out. Instructions that fewer than every other yield executes, of other threads and of a runtime's rare
paths, are omitted, since time decides their number. The disassembly tells which of them push and pop. The kept bytes
are found as in saved_bytes.py.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import saved_bytes

FEWER, MORE = 1000, 5000
TRACED = 30  # yields: a list of all accesses to memory is long
BUILD = Path(os.environ["PIRN_BENCH_BUILD"])


def executed(program: Path, yields: int) -> dict[int, int]:
    """Returns how often a program executes the instruction at each address."""
    environment = os.environ | {"PIRN_BENCH_COUNT": str(yields), "PIRN_BENCH_COUNT_LOOP": "0"}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        subprocess.run(["valgrind", "--tool=callgrind", "--dump-instr=yes", "--compress-pos=no", "--dump-line=no",
                        f"--callgrind-out-file={out}", str(program), "spread"], env=environment, capture_output=True,
                       check=True, timeout=120)
        found: dict[int, int] = {}
        called = False  # the line after `calls=` is the cost of the callee
        for line in out.read_text().splitlines():
            cost = re.match(r"0x([0-9a-f]+) (?:\d+ )?(\d+)$", line)
            if cost and not called:
                address = int(cost[1], 16)
                found[address] = found.get(address, 0) + int(cost[2])
            called = line.startswith("calls=")
    return found


def disassembly(program: Path) -> tuple[set[int], dict[str, tuple[int, int]]]:
    """Returns the addresses of instructions that push or pop, and the beginning and end of each function."""
    text = subprocess.run(["llvm-objdump-22", "-d", "--no-show-raw-insn", "--no-leading-headers", str(program)],
                          capture_output=True, text=True, check=True).stdout
    moves = {int(found, 16) for found in re.findall(r"^\s*([0-9a-f]+):\s+(?:push|pop)", text, re.MULTILINE)}
    symbols = subprocess.run(["llvm-objdump-22", "-t", "--demangle", str(program)], capture_output=True, text=True,
                             check=True).stdout
    functions = {}
    for begin, size, name in re.findall(r"^([0-9a-f]+) .{7} \.text\s+([0-9a-f]+) (.*)$", symbols, re.MULTILINE):
        functions[name] = (int(begin, 16), int(begin, 16) + int(size, 16))
    return moves, functions


def kept_at_yield(program: Path, bottom: tuple[int, int]) -> int:
    """Returns the bytes that a fiber keeps at the switch in a function."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "trace"
        fibers = saved_bytes.run(program, log, "spread", {"FIBERS": 3, "COUNT": TRACED, "COUNT_LOOP": 0})
        points = saved_bytes.kept(saved_bytes.accesses(log), fibers)
    stacks = [stack for at, (stack, _) in points.items() if bottom[0] <= at < bottom[1]]
    if not stacks:
        raise RuntimeError("no fiber has switched in the function at the bottom")
    return saved_bytes.CONTEXT_BYTES + max(stacks)


def main() -> int:
    impl = sys.argv[1]
    depth, live = (int(os.environ[f"PIRN_BENCH_{name}"]) for name in ("DEPTH", "LIVE"))
    program = BUILD / "rivals" / "spread" / impl
    moves, functions = disassembly(program)
    fewer, more = executed(program, FEWER), executed(program, MORE)
    counts = {address: count - fewer.get(address, 0) for address, count in more.items()}
    counts = {address: count for address, count in counts.items() if count >= (MORE - FEWER) / 2}
    # The plugin keeps two forms of some functions, of which a program executes one.
    chain = {name: (begin, end) for name, (begin, end) in functions.items() if (found := re.search(r"level<(\d+), (\d+)>\(", name))
             and int(found[1]) <= depth and int(found[2]) == live and any(begin <= address < end for address in counts)}
    if len(chain) != depth:
        raise RuntimeError(f"the chain has {len(chain)} functions, not {depth}")
    bottom = next(place for name, place in chain.items() if f"level<1, {live}>" in name)

    def row(what: str, unit: str, value: float) -> None:
        print(json.dumps({"workload": "spread-counts", "impl": impl, "params": {"of": what, "depth": depth, "live": live},
                          "unit": unit, "value": value}))

    row("instructions", "per yield", sum(counts.values()) / (MORE - FEWER))
    row("pushes and pops", "per yield", sum(counts.get(address, 0) for address in moves) / (MORE - FEWER))
    row("code", "B", sum(end - begin for begin, end in chain.values()))
    row("kept", "B", kept_at_yield(program, bottom))
    return 0


if __name__ == "__main__":
    sys.exit(main())
