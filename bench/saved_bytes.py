#!/usr/bin/env python3
"""The saved-bytes workload: how many bytes a fiber of threadring/pirn keeps at each point where it switches.

The fiber keeps the bytes in memory that it needs once it is resumed: the words of its saved context, and each byte of
its stack that it will read before it is written. Such bytes are return addresses, registers that functions save for
their callers, and values that the compiler has spilled, at any place and in any function up to the first. Bytes of its
stack that only others read while it is suspended, such as its place in a queue, are counted separately. Nothing is
guessed from the machine code: the unchanged program runs under valgrind's lackey, which prints each access to memory,
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
CONTEXT_BYTES = 24  # pc, sp, fp: arch/shared/types.hpp


def run(program: Path, log: Path, workload: str, inputs: dict) -> list[tuple[int, int, int]]:
    """Traces a program into `log`. Returns for each fiber the beginning and end of its stack, and the address of its
    context."""
    environment = os.environ | {f"PIRN_BENCH_{name}": str(value) for name, value in inputs.items()}
    done = subprocess.run(["valgrind", "--tool=lackey", "--trace-mem=yes", "--basic-counts=no", f"--log-file={log}",
                           str(program), workload], env=environment | {"PIRN_BENCH_TELL": "1"}, capture_output=True,
                          text=True, timeout=120)
    if done.returncode != 0:
        raise RuntimeError(f"{program} under valgrind ended with {done.returncode}: {done.stderr.strip()[-200:]}")
    return [tuple(int(word, 16) for word in found) for found in
            re.findall(r"^fiber (0x\w+) (0x\w+) (0x\w+)$", done.stderr, re.MULTILINE)]


def accesses(log: Path) -> list[tuple[str, int, int, int]]:
    """Returns the accesses: kind (L, S or M), address, number of bytes, and the address of the instruction."""
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
    """Returns for each instruction at which fibers switch the most bytes that a fiber has kept there, and that others
    have read."""
    contexts = {context: (low, high) for low, high, context in fibers}
    # The fiber that runs at each access, if any: a switch stores pc, sp and fp of one fiber and loads those of the
    # next.
    runs, switches, running = [], set(), None
    for index, (kind, address, _, _) in enumerate(trace):
        if kind == "L" and address in contexts:
            running = address
        runs.append(running)
        if address == running and all(other[:2] == ("S", address + 8 * word)
                                      for word, other in enumerate(trace[index:index + 3])):
            switches.add(index)
            running = None

    most = {}
    needed = {context: set() for context in contexts}  # bytes of its stack that the fiber will read
    read = {context: set() for context in contexts}  # and that others will read
    for index in range(len(trace) - 1, -1, -1):
        kind, address, size, instruction = trace[index]
        if index in switches:
            before = most.get(instruction, (0, 0))
            now = (len(needed[address]), len(read[address] - needed[address]))
            most[instruction] = tuple(map(max, before, now))
            continue
        owner = next((context for context, (low, high) in contexts.items() if low <= address < high), None)
        if owner is None:
            continue
        span = range(address, address + size)
        if kind in ("S", "M"):
            needed[owner].difference_update(span)
            read[owner].difference_update(span)
        if kind in ("L", "M"):
            (needed if runs[index] == owner else read)[owner].update(span)
    return most


def main() -> int:
    program = Path(os.environ["PIRN_BENCH_BUILD"]) / "rivals" / "traced"
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "trace"
        fibers = run(program, log, "threadring", {"PROCESSES": PROCESSES, "COUNT": HOPS, "COUNT_LOOP": 0})
        if len(fibers) != PROCESSES:
            raise RuntimeError(f"{len(fibers)} of {PROCESSES} fibers have reported where they are")
        points = kept(accesses(log), fibers)
    if not points:
        raise RuntimeError("no fiber has switched")
    for number, (instruction, (stack, strangers)) in enumerate(sorted(points.items()), 1):
        print(f"point {number} at {instruction:#x}: {stack} bytes of stack, {strangers} that others read", file=sys.stderr)
        print(json.dumps({"workload": "saved-bytes", "impl": "pirn", "params": {"point": number}, "unit": "B",
                          "value": CONTEXT_BYTES + stack, "note": "pc, sp, fp and what of the stack is read later"}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
