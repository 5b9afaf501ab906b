#!/usr/bin/env python3
"""The saved-bytes workload: how many bytes a fiber keeps at each point where it switches, and what rivals keep.

The fiber keeps the bytes in memory that it needs once it is resumed: the words of its saved context, and each byte of
its stack that it will read before it is written. Such bytes are return addresses, registers that functions save for
their callers, and values that the compiler has spilled, at any place and in any function up to the first. Bytes of its
stack that only others read while it is suspended, such as its place in a queue, are counted separately. Nothing is
guessed from the machine code: the unchanged program runs under valgrind's lackey, which prints each access to memory,
and that list is read backwards. After the count by hand in Dolan, Muralidharan and Gregg, "Compiler support for
lightweight context switching", 7.5.

Without an argument the programs are threadring/pirn and saved-bytes/traced/pirn, a fiber that suspends in each way. With
the name of another one in saved-bytes/traced, that says in the trace when it is suspended, and in which memory.
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
TRACED = Path(os.environ.get("PIRN_BENCH_BUILD", ".")) / "rivals" / "traced"
NOTE = "pc, sp, fp and what of the stack is read later"


def trace(program: Path, log: Path, workload: str, inputs: dict) -> tuple[str, str]:
    """Traces a program into `log`. Returns what it prints, and on standard error."""
    environment = os.environ | {f"PIRN_BENCH_{name}": str(value) for name, value in inputs.items()}
    done = subprocess.run(["valgrind", "--tool=lackey", "--trace-mem=yes", "--basic-counts=no", f"--log-file={log}",
                           str(program), workload], env=environment | {"PIRN_BENCH_TELL": "1"}, capture_output=True,
                          text=True, timeout=120)
    if done.returncode != 0:
        raise RuntimeError(f"{program} under valgrind ended with {done.returncode}: {done.stderr.strip()[-200:]}")
    return done.stdout, done.stderr


def told_fibers(text: str) -> list[tuple[int, int, int]]:
    """Returns for each fiber that a program told of the beginning and end of its stack, and the address of its context."""
    return [tuple(int(word, 16) for word in found) for found in
            re.findall(r"^fiber (0x\w+) (0x\w+) (0x\w+)$", text, re.MULTILINE)]


def told_points(text: str) -> dict[int, str]:
    """Returns the points that a program told of, by the address of the store that begins each."""
    return {int(address, 16): name for address, name in re.findall(r"^point (0x\w+) (.*)$", text, re.MULTILINE)}


def told_moments(text: str) -> dict[int, tuple[str, list[tuple[int, int]]]]:
    """Returns the moments at which something is suspended, by the address of a store: its name and its memory."""
    found = {}
    for address, words, name in re.findall(r"^suspended (0x\w+)((?: 0x\w+)+) (.*)$", text, re.MULTILINE):
        places = [int(word, 16) for word in words.split()]
        found[int(address, 16)] = name, list(zip(places[::2], places[1::2]))
    return found


def run(program: Path, log: Path, workload: str, inputs: dict) -> list[tuple[int, int, int]]:
    """Traces a program into `log`. Returns for each fiber the beginning and end of its stack, and the address of its
    context."""
    return told_fibers(trace(program, log, workload, inputs)[1])


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


def kept(trace, fibers, points=None) -> dict:
    """Returns for each instruction at which fibers switch the most bytes that a fiber has kept there, and that others
    have read; with `points`, as of `told_points`, for each point by its name."""
    points, begun, now = points or {}, [], None
    contexts = {context: (low, high) for low, high, context in fibers}
    # The fiber that runs at each access, if any: a switch stores pc, sp and fp of one fiber and loads those of the
    # next.
    runs, switches, running = [], set(), None
    for index, (kind, address, _, _) in enumerate(trace):
        if kind == "L" and address in contexts:
            running = address
        if kind == "S":
            now = points.get(address, now)
        begun.append(now)
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
            at = begun[index] if points else instruction
            counted = (len(needed[address]), len(read[address] - needed[address]))
            most[at] = tuple(map(max, most.get(at, (0, 0)), counted))
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


def live(trace, moments) -> dict[str, int]:
    """Returns for each name in `moments`, as of `told_moments`, the most bytes of its memory that are read before they are
    written."""
    ranges = sorted({each for _, memory in moments.values() for each in memory})
    wanted, most = set(), {}
    for kind, address, size, _ in reversed(trace):
        if kind == "S" and address in moments:
            name, memory = moments[address]
            most[name] = max(most.get(name, 0), sum(1 for byte in wanted if any(low <= byte < high for low, high in memory)))
        elif any(low <= address < high for low, high in ranges):
            span = range(address, address + size)
            wanted.difference_update(span) if kind == "S" else wanted.update(span)
    return most


def row(impl: str, point, value: int, note: str) -> None:
    print(json.dumps({"workload": "saved-bytes", "impl": impl, "params": {"point": point}, "unit": "B", "value": value, "note": note}))


def of_threadring(log: Path) -> None:
    fibers = run(TRACED, log, "threadring", {"PROCESSES": PROCESSES, "COUNT": HOPS, "COUNT_LOOP": 0})
    if len(fibers) != PROCESSES:
        raise RuntimeError(f"{len(fibers)} of {PROCESSES} fibers have reported where they are")
    points = kept(accesses(log), fibers)
    if not points:
        raise RuntimeError("no fiber has switched")
    for number, (instruction, (stack, strangers)) in enumerate(sorted(points.items()), 1):
        print(f"point {number} at {instruction:#x}: {stack} bytes of stack, {strangers} that others read", file=sys.stderr)
        row("pirn", number, CONTEXT_BYTES + stack, NOTE)


def of_program(impl: str, log: Path) -> None:
    """Prints the rows of one of saved-bytes/traced."""
    printed, told = trace(TRACED.with_name(f"traced-{impl}"), log, "saved-bytes", {})
    print(printed, end="")
    every = accesses(log)
    if points := told_points(told):
        found = kept(every, told_fibers(told), points)
        if missing := set(points.values()) - set(found):
            raise RuntimeError(f"the fiber has not suspended at: {', '.join(sorted(missing))}")
        for name in points.values():
            stack, strangers = found[name]
            print(f"{name}: {stack} bytes of stack, {strangers} that others read", file=sys.stderr)
            row(impl, name, CONTEXT_BYTES + stack, NOTE)
    # The words of a context of pirn's that is in the other side's registers are not in the memory told of.
    for name, bytes_kept in live(every, told_moments(told)).items():
        row(impl, name, bytes_kept + (CONTEXT_BYTES if impl == "pirn" else 0), NOTE if impl == "pirn" else "what is read later")


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "trace"
        if len(sys.argv) > 1:
            of_program(sys.argv[1], log)
        else:
            of_threadring(log)
            of_program("pirn", log)
    return 0


if __name__ == "__main__":
    sys.exit(main())
