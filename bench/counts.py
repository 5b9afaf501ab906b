"""Counts events in programs of the bench, instead of timing them: instructions, branches, mispredicted ones, cache
misses.

Each program runs twice under cachegrind, untimed, with different numbers of operations. The difference between the two,
divided by the difference in operations, excludes the start, the checks and the end of a program. The caches are those
that the commands below describe, not the machine's, so that counts compare between machines. Where `perf` reads the
counters of the processor, each program runs under it too, with more operations, and has a second row.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

TOOL = ["valgrind", "--tool=cachegrind", "--cache-sim=yes", "--branch-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64",
        "--LL=8388608,16,64"]
KEYS = ("workload", "impl", "params", "per", "instructions", "branches", "mispredicted", "d1_misses", "ll_misses")
EVENTS = {"instructions": ("Ir",), "branches": ("Bc", "Bi"), "mispredicted": ("Bcm", "Bim"), "d1_misses": ("D1mr", "D1mw"),
          "ll_misses": ("DLmr", "DLmw")}
# The same of the processor, and its cycles.
HARDWARE = {"instructions": "instructions:u", "branches": "branches:u", "mispredicted": "branch-misses:u",
            "d1_misses": "L1-dcache-load-misses:u", "cycles": "cycles:u"}
PERF = ["perf", "stat", "-x", ",", "-e", ",".join(HARDWARE.values())]
TIMES_MORE = 100  # operations under perf, where a program runs at its full speed
LIMIT_S = 300  # for one run


@dataclass
class Case:
    """The counted part of a workload: the loop-th timing loop of its programs, with these inputs."""

    workload: str
    params: dict
    per: str
    operations: tuple[int, int]
    loop: int = 0
    inputs: dict = field(default_factory=dict)


_MOVES = 2**14 - 1
# As in yield-breakdown/pirn.cpp: each has a loop for one body and one for ten, behind that of the empty loop.
YIELD_STEPS = ("0 all saved", "1 six registers", "2 switch inlined", "3 preserve_none", "4 yield inlined", "5 colouring", "6 small stack")
CASES = [
    Case("switch", {"contexts": 2}, "switch", (10_000, 60_000)),
    Case("yield", {"fibers": 10}, "yield", (10_000, 60_000), inputs={"FIBERS": 10, "WORKERS": 1}),
    *(Case("yield-breakdown", {"step": step, "bodies": "one"}, "yield", (10_000, 60_000), 1 + 2 * number)
      for number, step in enumerate(YIELD_STEPS)),
    Case("transfer", {"values": 2}, "switch", (10_000, 60_000)),
    Case("sum", {"form": "for"}, "element", (10_000, 60_000), 0),
    Case("sum", {"form": "while"}, "element", (10_000, 60_000), 1),
    Case("hanoi", {"disks": 14}, "move", (_MOVES, 5 * _MOVES), inputs={"DISKS_FIRST": 14, "DISKS_LAST": 14}),
    Case("tree-walk", {"mode": "walk"}, "element", (20_000, 60_000), 0, {"NODES": 20_000}),
    Case("frames", {"depth": 4}, "frame", (10_000, 60_000), 1),
    Case("write_fully", {"part": "total"}, "step", (12_500, 62_500), 0, {"SEND_MB": 1}),
    Case("callbacks", {"phase": "steady"}, "request", (50_000, 150_000)),
    Case("client", {"protocol": "http", "bytes": 2**20}, "request", (320, 960), 0),
    Case("client", {"protocol": "rpc", "bytes": 2**20}, "request", (320, 960), 1),
    Case("client", {"protocol": "http", "bytes": 100}, "request", (6400, 32_000), 2),
    Case("client", {"protocol": "rpc", "bytes": 100}, "request", (6400, 32_000), 3),
    Case("coro-spawn", {}, "coroutine", (1000, 6000)),
    # From the start of a sleep to its end; of a fiber or a task also its start and its end.
    Case("timers", {"op": "insert, cancel"}, "timer", (20_000, 60_000), 0, {"STACK": 2**16}),
    Case("timers", {"op": "insert, fire"}, "timer", (20_000, 60_000), 1, {"STACK": 2**16}),
]


def reason_to_skip() -> str:
    """Returns why nothing can be counted here, or an empty string."""
    return "" if shutil.which(TOOL[0]) else f"{TOOL[0]} is not installed"


def parse(text: str) -> dict[str, int]:
    """Returns the totals of a file that cachegrind wrote, by the names of EVENTS."""
    events = re.search(r"^events: (.*)$", text, re.MULTILINE)
    summary = re.search(r"^summary:? (.*)$", text, re.MULTILINE)
    if not events or not summary:
        raise ValueError("cachegrind wrote no summary")
    totals = dict(zip(events.group(1).split(), map(int, summary.group(1).split())))
    return {name: sum(totals[event] for event in parts) for name, parts in EVENTS.items()}


def run(command: list[str], case: Case, operations: int, environment: dict) -> dict[str, int]:
    """Returns the totals of one run of a program."""
    inputs = case.inputs | {"COUNT": operations, "COUNT_LOOP": case.loop}
    environment = environment | {f"PIRN_BENCH_{name}": str(value) for name, value in inputs.items()}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        done = subprocess.run([*TOOL, f"--cachegrind-out-file={out}", *command, case.workload], capture_output=True,
                              text=True, errors="replace", timeout=LIMIT_S, env=environment, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            complaint = (done.stderr.strip() or "no message").splitlines()[-1]
            raise RuntimeError(f"ended with {done.returncode} under cachegrind: {complaint[:200]}")
        return parse(out.read_text())


def count(program, case: Case, environment: dict, run=run) -> dict:
    """Returns a row with the keys of KEYS: the cost of one operation of a program."""
    fewer, more = case.operations
    first, second = (run(program.command, case, operations, environment) for operations in (fewer, more))
    each = {name: (second[name] - first[name]) / (more - fewer) for name in EVENTS}
    return {"workload": case.workload, "impl": program.impl, "params": case.params, "per": case.per} | each


def countable(program, folder: Path) -> bool:
    """Returns whether the language of a program lets cachegrind separate its work from that of its runtime."""
    return any((folder / program.workload / f"{program.source or program.impl}{suffix}").exists() for suffix in (".cpp", ".rs"))


def without_hardware() -> str:
    """Returns why the counters of the processor cannot be read, or an empty string."""
    if not shutil.which(PERF[0]):
        return "perf is not installed"
    done = subprocess.run([*PERF, "true"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    try:
        parse_perf(done.stderr)
    except ValueError as error:
        return str(error)
    return ""


def parse_perf(text: str) -> dict[str, int]:
    """Returns the counts that `perf stat -x ,` printed, by the names of HARDWARE."""
    found = {}
    for line in text.splitlines():
        fields = line.split(",")
        if len(fields) > 2 and fields[0].isdigit():
            found[fields[2]] = int(fields[0])
    if missing := [event for event in HARDWARE.values() if event not in found]:
        raise ValueError(f"perf does not count {missing[0]} on this machine")
    return {name: found[event] for name, event in HARDWARE.items()}


def run_perf(command: list[str], case: Case, operations: int, environment: dict) -> dict[str, int]:
    """As `run`, by the counters of the processor."""
    inputs = case.inputs | {"COUNT": operations, "COUNT_LOOP": case.loop}
    environment = environment | {f"PIRN_BENCH_{name}": str(value) for name, value in inputs.items()}
    done = subprocess.run([*PERF, *command, case.workload], capture_output=True, text=True, errors="replace", timeout=LIMIT_S,
                          env=environment, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise RuntimeError(f"ended with {done.returncode} under perf")
    return parse_perf(done.stderr)


def count_hardware(program, case: Case, environment: dict, run=run_perf) -> dict:
    """As `count`, with the cycles of an operation, by the counters of the processor."""
    fewer, more = (TIMES_MORE * operations for operations in case.operations)
    first, second = (run(program.command, case, operations, environment) for operations in (fewer, more))
    each = {name: (second[name] - first[name]) / (more - fewer) for name in HARDWARE}
    return {"workload": case.workload, "impl": program.impl, "params": case.params,
            "per": f"{case.per} by the processor's counters"} | each


def write(rows: list[dict], path: Path) -> None:
    path.write_text(json.dumps(rows, indent=2) + "\n")


def beside(path: Path) -> Path:
    """Returns the file for the counts of a run whose timing rows are in `path`: counts have other keys, and a separate
    array."""
    return path.with_name(f"{path.stem}.counts{path.suffix or os.extsep + 'json'}")
