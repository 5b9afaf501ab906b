#!/usr/bin/env python3
"""Measures pirn and its rivals: builds them, runs them in turn on one core, shows medians and ratios.

    ./dev bench [NAME...] [--list] [--json FILE] [--rounds N] [--quick] [--rivals DIR] [--docs]

README.md beside this file says what a program of the bench gets and prints.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import http_hello
import report
import rivals
from rivals import WORKLOADS

# Inputs that all languages share; a program finds them in its environment as PIRN_BENCH_<name>.
INPUTS = {"FIBERS": 10, "BATCH": 1000, "STACK": 65536, "BLOCK_MS": 5, "BLOCKS": 15, "MILLION": 1_000_000, "SECONDS": 3,
          "DISKS_FIRST": 1, "DISKS_LAST": 20, "NODES": 1_000_000}
QUICK = {"BLOCK_MS": 2, "BLOCKS": 7, "MILLION": 100_000, "SECONDS": 1}
LIMIT_S = 300  # for one program in one round


def say(*words) -> None:
    print(*words, file=sys.stderr, flush=True)


def pin(core):
    return lambda: os.sched_setaffinity(0, {core})


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench", description="Measure pirn and its rivals.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a workload; all of them when none is named")
    parser.add_argument("--list", action="store_true", help="list workloads and implementations, and measure nothing")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the rows to FILE")
    parser.add_argument("--rounds", metavar="N", type=int, help="rounds (default 9; with --quick 3)")
    parser.add_argument("--quick", action="store_true", help="short loops: under two minutes for everything")
    parser.add_argument("--rivals", metavar="DIR", type=Path, action="append", default=[],
                        help="also run every executable of DIR, with the name of the workload as its argument")
    parser.add_argument("--docs", action="store_true", help="write docs/performance.md from this run")
    options = parser.parse_args()
    for name in options.names:
        if name not in WORKLOADS:
            parser.error(f"no workload {name}; there are {', '.join(WORKLOADS)}")
    for folder in options.rivals:
        if not folder.is_dir():
            parser.error(f"--rivals {folder}: no such folder")
    options.rounds = options.rounds if options.rounds is not None else 3 if options.quick else 9
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    options.names = [name for name in WORKLOADS if name in options.names] or list(WORKLOADS)
    return options


def show_list() -> None:
    files = rivals.sources(WORKLOADS)
    for workload, what in WORKLOADS.items():
        print(f"{workload}: {what}")
        print("    " + ", ".join(impl for of, impl in files if of == workload))


class Bench:
    """One run: what is measured, where, and what came out."""

    def __init__(self, options, programs):
        self.options = options
        self.cores = sorted(os.sched_getaffinity(0))
        inputs = INPUTS | (QUICK if options.quick else {})
        self.environment = dict(os.environ, PIRN_BENCH_BUILD=str(rivals.BUILD),
                                PIRN_BENCH_SERVER_CORE=str(self.cores[-1]), PIRN_BENCH_CLIENT_CORE=str(self.cores[0]))
        self.environment |= {f"PIRN_BENCH_{name}": str(value) for name, value in inputs.items()}
        self.seconds = inputs["SECONDS"]
        self.results = report.Results()
        self.programs = programs
        self.skipped = []
        self.failed = False
        self._told = set()
        for program in programs:
            if program.skipped:
                self.drop(program, program.skipped, failed=program.impl == "pirn")
            elif program.workload == "http-hello" and not program.outside:
                if reason := http_hello.reason_to_skip(self.cores):
                    self.drop(program, reason)
        self._ours = {(program.workload, program.impl) for program in programs
                      if not program.outside and not program.skipped}

    def drop(self, program, reason, failed=False) -> None:
        program.skipped = reason
        self.failed |= failed
        self.skipped.append(f"{program.name}: {reason}")
        say(f"{'failed' if failed else 'skipped'}: {program.name}: {reason}")

    def tell_once(self, message) -> None:
        if message not in self._told:
            self._told.add(message)
            say(message)

    def measure(self) -> None:
        clocks = [program for program in self.programs if program.workload == "clock"]
        for workload in self.options.names:
            programs = [program for program in self.programs if program.workload == workload]
            if workload in ("switch", "yield"):
                programs = clocks + programs
            for turn in range(self.options.rounds):
                running = [program for program in programs if not program.skipped]
                say(f"{workload}: round {turn + 1} of {self.options.rounds}, {len(running)} programs")
                # Back and forth, so that no program always runs after the same one.
                for program in running if turn % 2 == 0 else reversed(running):
                    self.run(program)

    def run(self, program) -> None:
        """One program, one round."""
        try:
            for row in self.rows(program):
                impl = row["impl"] if program.outside else program.impl
                if program.outside and (program.workload, impl) in self._ours:
                    raise ValueError(f"it calls itself {impl}, which is measured already")
                self.results.add(row, program.workload, impl)
                program.shown.add(impl)
        except (RuntimeError, OSError, ValueError, KeyError, TypeError, subprocess.TimeoutExpired) as error:
            self.results.forget(program.workload, program.shown)
            self.drop(program, str(error), failed=not program.outside)

    def rows(self, program) -> list[dict]:
        if program.workload == "http-hello" and not program.outside:
            return http_hello.measure(program.command, pin, self.cores, self.seconds, self.environment)
        # A rival from outside brings its own client for http-hello and pins the two itself.
        where = None if program.workload == "http-hello" else pin(self.cores[-1])
        done = subprocess.run(program.command + [program.workload], capture_output=True, text=True, timeout=LIMIT_S,
                              env=self.environment, preexec_fn=where, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            complaint = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
            raise RuntimeError(f"ended with {done.returncode}: {complaint[:200]}")
        rows = rivals.parse_rows(done.stdout)
        for row in rows:
            if row.get("workload") not in WORKLOADS:
                self.tell_once(f"ignored: {program.impl} prints a row of workload {row.get('workload')!r}, which is unknown")
        rows = [row for row in rows if row.get("workload") == program.workload]
        if not rows:
            raise RuntimeError(f"prints no row of {program.workload}")
        return rows


def main() -> int:
    options = arguments()
    if options.list:
        show_list()
        return 0
    say("building")
    wanted = options.names + (["clock"] if {"switch", "yield"} & set(options.names) else [])
    programs = rivals.build(dict.fromkeys(wanted))
    for folder in options.rivals:
        programs += rivals.outside(folder, options.names)
    bench = Bench(options, programs)
    bench.measure()

    print(report.text(bench.results, options.names))
    for line in bench.skipped:
        print(f"not measured: {line}")
    if options.json:
        options.json.write_text(json.dumps(bench.results.rows(options.names), indent=2) + "\n")
    if options.docs:
        print(f"written: {report.write_page(bench.results, options.names, options.rounds, bench.skipped)}")
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
