#!/usr/bin/env python3
"""The saved-bytes workload: how many bytes a fiber of threadring keeps at each point where it switches.

    saved_bytes.py IMPLEMENTATION

Kept is what the fiber needs once it is resumed and has in memory: the words of its saved context, and each byte of its
stack that it will read before anybody writes it: values that the compiler has spilled there, wherever that was done and
in whatever function up to the first, return addresses, and registers that functions save for their callers. Bytes of
its stack that only others read while it is suspended, such as its place in a queue, are counted apart. Nothing is
guessed from the machine code: the program runs as it is under valgrind's lackey, which prints each access to memory,
and that list is read backwards. After the count by hand in Dolan, Muralidharan and Gregg, "Compiler support for
lightweight context switching", 7.5.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PROCESSES, HOPS = 3, 30
CONTEXT_BYTES = 24  # pc, sp, fp: arch_x86_64.hpp


def run(program: Path, log: Path) -> list[tuple[int, int, int]]:
    """Traces a program into `log`; of each fiber where its stack begins, where it ends and where its context is."""
    inputs = {"PROCESSES": PROCESSES, "COUNT": HOPS, "COUNT_LOOP": 0}
    environment = os.environ | {f"PIRN_BENCH_{name}": str(value) for name, value in inputs.items()}
    done = subprocess.run(["valgrind", "--tool=lackey", "--trace-mem=yes", "--basic-counts=no", f"--log-file={log}",
                           str(program), "threadring"], env=environment | {"PIRN_BENCH_TELL": "1"}, capture_output=True,
                          text=True, timeout=120)
    if done.returncode != 0:
        raise RuntimeError(f"{program} under valgrind ended with {done.returncode}: {done.stderr.strip()[-200:]}")
    return [tuple(int(word, 16) for word in found) for found in
            re.findall(r"^fiber (0x\w+) (0x\w+) (0x\w+)$", done.stderr, re.MULTILINE)]


def accesses(log: Path) -> list[tuple[str, int, int, int]]:
    """What was done (L, S or M), where, to how many bytes, and by the instruction at which address."""
    found = []
    instruction = 0
    with log.open() as lines:
        for line in lines:
            kind = line[:2].strip()
            if kind not in ("I", "L", "S", "M"):
                continue
            address, size = line[3:].split(",")
            if kind == "I":
                instruction = int(address, 16)
            else:
                found.append((kind, int(address, 16), int(size), instruction))
    return found


def kept(trace, fibers) -> dict[int, tuple[int, int]]:
    """For each instruction at which fibers switch the most bytes that one has kept there, and that others have read."""
    contexts = {context: (low, high) for low, high, context in fibers}
    # Who runs at each access, if it is one of them: a switch stores the context of one and loads that of the next.
    runs, running = [], None
    for kind, address, _, _ in trace:
        if kind == "L" and address in contexts:
            running = address
        runs.append(running)
        if kind == "S" and address == running:
            running = None
    most = {}
    needed = {context: set() for context in contexts}
    read = {context: set() for context in contexts}
    spans = sorted((low, high, context) for context, (low, high) in contexts.items())

    def owner(address):
        return next((context for low, high, context in spans if low <= address < high), None)

    for (kind, address, size, instruction), by in zip(reversed(trace), reversed(runs)):
        if kind == "S" and address in contexts and address == by:
            stack, strangers = most.get(instruction, (0, 0))
            most[instruction] = (max(stack, len(needed[address])), max(strangers, len(read[address] - needed[address])))
            continue
        context = owner(address)
        if context is None:
            continue
        span = range(address, address + size)
        if kind in ("S", "M"):
            needed[context].difference_update(span)
            read[context].difference_update(span)
        if kind in ("L", "M"):
            (needed if by == context else read)[context].update(span)
    return most


def main() -> int:
    implementation = sys.argv[1]
    program = Path(os.environ["PIRN_BENCH_BUILD"]) / "rivals" / "threadring" / implementation
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "trace"
        fibers = run(program, log)
        if len(fibers) != PROCESSES:
            raise RuntimeError(f"{len(fibers)} of {PROCESSES} fibers have said where they are")
        points = kept(accesses(log), fibers)
    if not points:
        raise RuntimeError("no fiber has switched")
    for number, (instruction, (stack, strangers)) in enumerate(sorted(points.items()), 1):
        print(f"point {number} at {instruction:#x}: {stack} bytes of stack, {strangers} that others read", file=sys.stderr)
        print(json.dumps({"workload": "saved-bytes", "impl": implementation, "params": {"point": number}, "unit": "B",
                          "value": CONTEXT_BYTES + stack, "note": "pc, sp, fp and what of the stack is read later"}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
