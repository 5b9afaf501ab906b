#!/usr/bin/env python3
"""Measures pirn and its rivals: builds them, runs them in turn on one core, shows medians and ratios.

    ./dev bench [NAME...] [--list] [--json FILE] [--rounds N] [--quick] [--sweep] [--rivals DIR] [--against REV]
                         [--counts] [--plot [DIR]] [--docs]

README.md beside this file says what a program of the bench gets and prints.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import counts
import files
import page
import plot
import records
import report
import rivals
import servers
import settings
from rivals import WORKLOADS

# Inputs that all languages share. A program finds them in its environment as PIRN_BENCH_<name>.
INPUTS = {"FIBERS": 10, "BATCH": 1000, "STACK": 65536, "BLOCK_MS": 5, "BLOCKS": 15, "MILLION": 1_000_000, "SECONDS": 3,
          "DISKS_FIRST": 1, "DISKS_LAST": 20, "NODES": 1_000_000, "SEND_MB": 100, "KEYS": 10_000, "UNDER_WAY": 16,
          "IDLE_SECONDS": 10, "CLIENTS": 32, "FILE_MB": 512}
QUICK = {"BLOCK_MS": 2, "BLOCKS": 7, "MILLION": 100_000, "SECONDS": 1, "IDLE_SECONDS": 1, "SEND_MB": 10, "NODES": 100_000,
         "FILE_MB": 64}
LIMIT_S = 300  # for one program in one round, or for one setting of it
BEYOND = 77  # exit status of a program that does not support a setting


class BeyondReach(Exception):
    """The reason why a program cannot be measured at one setting."""


def say(*words) -> None:
    print(*words, file=sys.stderr, flush=True)


def pin(*cores):
    return lambda: os.sched_setaffinity(0, cores)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench", description="Measure pirn and its rivals.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a workload; all of them when none is named")
    parser.add_argument("--list", action="store_true", help="list workloads and implementations, and measure nothing")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the rows to FILE")
    parser.add_argument("--rounds", metavar="N", type=int, help=f"rounds (default {settings.rounds_text()}; with --quick 3)")
    parser.add_argument("--quick", action="store_true", help="short loops and few settings: minutes for everything")
    parser.add_argument("--sweep", action="store_true",
                        help=f"measure {', '.join(settings.SWEEPS)} at all their settings, which takes hours")
    parser.add_argument("--rivals", metavar="DIR", type=Path, action="append", default=[],
                        help="also run every executable of DIR, with the name of the workload as its argument")
    parser.add_argument("--against", metavar="REV",
                        help="compare pirn with itself at a git revision, in turn, and leave the rivals out")
    parser.add_argument("--counts", action="store_true",
                        help="also count instructions, branches and cache misses; with --rounds 0 only that")
    parser.add_argument("--plot", metavar="DIR", type=Path, nargs="?", const=rivals.BUILD / "plots",
                        help="draw each setting of each workload as an SVG in DIR (default: plots in the build folder)")
    parser.add_argument("--docs", action="store_true",
                        help="write docs/performance.md, README.md's table and, in the build folder, the pages of all workloads with "
                             "plots, counts included; of workloads that are not measured now it keeps what it has")
    options = parser.parse_args()
    if options.plot and str(options.plot) in WORKLOADS and not options.plot.is_dir():
        options.names.append(str(options.plot))  # `--plot NAME`: the folder was left out
        options.plot = rivals.BUILD / "plots"
    for name in options.names:
        if name not in WORKLOADS:
            parser.error(f"no workload {name}; there are {', '.join(WORKLOADS)}")
    for folder in options.rivals:
        if not folder.is_dir():
            parser.error(f"--rivals {folder}: no such folder")
    if options.against and options.docs:
        parser.error("--against and --docs exclude each other")
    if options.quick and options.sweep:
        parser.error("--quick and --sweep exclude each other")
    if options.rounds is None and options.quick:
        options.rounds = 3
    options.counts |= options.docs
    if options.rounds is not None and (options.rounds < 0 or (options.rounds == 0 and not options.counts)):
        parser.error("--rounds must be at least 1, or 0 with --counts")
    options.names = [name for name in WORKLOADS if name in options.names] or list(WORKLOADS)
    return options


def show_list() -> None:
    files = rivals.sources(WORKLOADS)
    for workload, what in WORKLOADS.items():
        print(f"{workload}: {what}")
        print("    " + ", ".join(impl for of, impl in files if of == workload))


class Bench:
    """One run: its measurements, their place, and their results."""

    def __init__(self, options, programs):
        self.options = options
        self.scale = "quick" if options.quick else "sweep" if getattr(options, "sweep", False) else "normal"
        self.cores = sorted(os.sched_getaffinity(0))
        inputs = INPUTS | (QUICK if options.quick else {})
        self.environment = dict(os.environ, PIRN_BENCH_BUILD=str(rivals.BUILD), PIRN_BENCH_FILE=str(rivals.BUILD / "file"),
                                PIRN_BENCH_SERVER_CORE=str(self.cores[-1]), PIRN_BENCH_CLIENT_CORE=str(self.cores[0]))
        self.environment |= {f"PIRN_BENCH_{name}": str(value) for name, value in inputs.items()}
        self.seconds, self.file_mib = inputs["SECONDS"], inputs["FILE_MB"]
        self.results = report.Results()
        self.programs = programs
        self.skipped = []
        self.counted = []
        self.failed = False
        self.revisions = {}  # of the programs from outside, by workload and implementation
        self._told = set()
        for program in programs:
            if program.skipped:
                self.drop(program, program.skipped, failed=plot.is_ours(program.impl))
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

    def rounds(self, workload) -> int:
        if self.options.rounds is not None:
            return self.options.rounds
        return settings.SWEPT_ROUNDS.get(workload, settings.ROUNDS)

    def measure(self) -> None:
        clocks = [program for program in self.programs if program.workload == "clock"]
        for workload in self.options.names:
            programs = [program for program in self.programs if program.workload == workload]
            if workload in ("switch", "yield"):
                programs = clocks + programs
            for turn in range(self.rounds(workload)):
                running = [program for program in programs if not program.skipped]
                say(f"{workload}: round {turn + 1} of {self.rounds(workload)}, {len(running)} programs")
                for setting in settings.of(workload, self.scale):
                    # Back and forth, so that no program always runs after the same other one.
                    for program in running if turn % 2 == 0 else reversed(running):
                        if not program.skipped and setting.suits(program.impl):
                            self.run(program, setting)

    def count(self) -> None:
        """Runs --counts: the cases of the named workloads, for all countable programs."""
        cases = [case for case in counts.CASES if case.workload in self.options.names]
        if cases and (reason := counts.reason_to_skip()):
            self.skipped.append(f"counts: {reason}")
            say(f"skipped: counts: {reason}")
            return
        ways = [counts.count]
        if cases and (reason := counts.without_hardware()):
            self.skipped.append(f"counters of the processor: {reason}")
        else:
            ways.append(counts.count_hardware)
        for case in cases:
            programs = [program for program in self.programs if program.workload == case.workload
                        and not program.skipped and counts.countable(program, rivals.HERE)]
            say(f"{case.workload}: counting, {len(programs)} programs")
            for program in programs:
                try:
                    self.counted += [way(program, case, self.environment) for way in ways]
                except (RuntimeError, OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
                    self.drop_count(program, str(error))

    def drop_count(self, program, reason) -> None:
        self.failed |= plot.is_ours(program.impl)
        self.skipped.append(f"{program.name}, counts: {reason}")
        say(f"failed: {program.name}, counts: {reason}")

    def draw(self, folder: Path, rows: list[dict]) -> list[str]:
        """Draws rows. Returns the names of the pictures."""
        try:
            return plot.draw_elsewhere(folder, rows)
        except (RuntimeError, OSError) as error:
            self.skipped.append(f"plots: {error}")
            say(f"not drawn: {error}")
            return []

    def run(self, program, setting) -> None:
        """Runs one program at one setting for one round."""
        if setting.name in program.beyond:
            return
        try:
            for row in self.rows(program, setting):
                impl = row["impl"] if program.outside else program.impl
                if program.outside and (program.workload, impl) in self._ours:
                    raise ValueError(f"it calls itself {impl}, which is measured already")
                if program.note:
                    row = row | {"note": "; ".join(filter(None, (row.get("note"), program.note)))}
                self.results.add(row, program.workload, impl)
                program.shown.add(impl)
                if program.outside:
                    self.revisions[program.workload, impl] = program.revision
        except BeyondReach as reason:
            program.beyond.add(setting.name)
            where = f"{program.name}, {setting.name}" if setting.name else program.name
            self.skipped.append(f"{where}: {reason}")
            say(f"skipped: {where}: {reason}")
        except (RuntimeError, OSError, ValueError, KeyError, TypeError, subprocess.TimeoutExpired) as error:
            self.results.forget(program.workload, program.shown)
            self.drop(program, str(error), failed=not program.outside)

    def rows(self, program, setting) -> list[dict]:
        if setting.skipped:
            raise BeyondReach(setting.skipped)
        if setting.cores > len(self.cores):
            raise BeyondReach(f"needs {setting.cores} cores, and there are {len(self.cores)}")
        inputs = {f"PIRN_BENCH_{name}": str(value) for name, value in setting.inputs.items()}
        environment = self.environment | inputs | setting.variables
        if program.workload in servers.DRIVERS and not program.outside:
            try:
                return servers.measure(program.workload, program.command, setting, pin, self.cores, self.seconds,
                                       environment, rivals.RIVALS)
            except servers.Refused as reason:
                raise BeyondReach(str(reason)) from None
        # A rival from outside brings its own client for these and pins both of them.
        where = None if program.workload in servers.DRIVERS else pin(*self.cores[-setting.cores:])
        if program.workload == "file":
            files.prepare(rivals.BUILD / "file", self.file_mib, setting.inputs["ACCESS"])
        command = program.command_with_own_words if setting.own_words else program.command
        try:
            done = subprocess.run(command + [program.workload], capture_output=True, text=True, timeout=LIMIT_S,
                                  env=environment, preexec_fn=where, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            if setting.inputs:
                raise BeyondReach(f"takes more than {LIMIT_S} s") from None
            raise
        if done.returncode == BEYOND:
            raise BeyondReach((done.stderr.strip() or "no reason given").splitlines()[-1][:200])
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


def keep(record: records.Record, bench: Bench, workloads: list[str]) -> None:
    """Takes a run into the record of this machine, without programs of which nobody could tell what they are."""
    for workload in workloads:
        outside = {impl: revision for (of, impl), revision in bench.revisions.items() if of == workload}
        for impl in [impl for impl, revision in outside.items() if not revision]:
            bench.results.forget(workload, [impl])
            del outside[impl]
            bench.skipped.append(f"{workload}/{impl}: no file beside the program names its revision")
            say(f"not kept: {bench.skipped[-1]}")
        record.take(workload, bench.results, bench.counted, bench.skipped, outside)


def publish(all_records: records.Records, bench: Bench, names: list[str]) -> None:
    """Writes a run into the page and the files beside it."""
    here = all_records.of(records.machine())
    workloads = [*names, *(["clock"] if bench.results.rows(["clock"]) else [])]
    keep(here, bench, workloads)
    all_records.replace(here, workloads)
    all_records.write(records.KEPT)
    page.write_docs(all_records)
    folder = rivals.BUILD / "performance"
    pictures = bench.draw(folder / "plots", all_records.drawn)
    if (drawn := folder / "plots" / "yield-fibers-10.svg").exists() and "yield-fibers-10" in pictures:
        shutil.copy(drawn, records.DOCS / "performance.svg")
    page.write_pages(all_records, folder, pictures)
    print(f"written: {records.DOCS / 'performance.md'}, {folder / 'index.md'}")


def main() -> int:
    options = arguments()
    if options.list:
        show_list()
        return 0
    say("building")
    wanted = options.names + (["clock"] if {"switch", "yield"} & set(options.names) else [])
    programs = rivals.build(dict.fromkeys(wanted), ours_only=bool(options.against))
    if options.against:
        try:
            programs += rivals.against(options.against, options.names)
        except RuntimeError as reason:
            say(reason)
            return 1
    for folder in options.rivals:
        programs += rivals.outside(folder, options.names)
    bench = Bench(options, programs)
    bench.measure()

    if options.counts:
        bench.count()

    print(report.text(bench.results, options.names, bench.counted))
    if options.plot:
        bench.draw(options.plot, bench.results.rows(options.names))
        print(f"drawn: {options.plot}")
    for line in bench.skipped:
        print(f"not measured: {line}")
    if options.json:
        options.json.write_text(json.dumps(bench.results.rows(options.names), indent=2) + "\n")
        if options.counts:
            counts.write(bench.counted, counts.beside(options.json))
    if options.docs:
        publish(records.Records.read(), bench, options.names)
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
