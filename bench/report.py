"""What a run of the bench shows: tables for the terminal, rows for JSON, a page for the docs."""

import json
import os
import platform
import re
import statistics
import subprocess
from pathlib import Path

from rivals import ROOT, WORKLOADS

KEYS = ("workload", "impl", "params", "unit", "median", "min", "max", "rounds")
UNITS = ("ns", "B", "MiB", "%")


class Results:
    """The values of every row over all rounds."""

    def __init__(self):
        self._samples = {}
        self.notes = {}

    def add(self, row: dict, workload: str, impl: str) -> None:
        """Takes one row of one round; ValueError when it is not a row."""
        unit, params = row.get("unit"), row.get("params", {})
        if not isinstance(params, dict):
            raise ValueError("params is not an object")
        if not isinstance(unit, str) or not (unit in UNITS or unit.endswith("/s")):
            raise ValueError(f"unit {unit!r} is neither {', '.join(UNITS)} nor a rate that ends in /s")
        values = [row[name] for name in ("value", "median") if name in row][:1]
        values += [row[name] for name in ("min", "max") if name in row]
        if not values or any(isinstance(value, bool) or not isinstance(value, (int, float)) for value in values):
            raise ValueError("it has no value")
        key = (workload, impl, json.dumps(params, sort_keys=True), unit)
        self._samples.setdefault(key, []).append((values[0], min(values), max(values)))
        if row.get("note"):
            self.notes[workload, impl] = row["note"]

    def forget(self, workload: str, impls) -> None:
        """Drops all rows of implementations that turned out not to work."""
        self._samples = {key: samples for key, samples in self._samples.items()
                         if key[0] != workload or key[1] not in impls}

    def rows(self, workloads) -> list[dict]:
        """One object per implementation and parameters, with the keys of KEYS."""
        found = []
        for (workload, impl, params, unit), samples in self._samples.items():
            if workload in workloads:
                values = (workload, impl, json.loads(params), unit, statistics.median(value for value, _, _ in samples),
                          min(low for _, low, _ in samples), max(high for _, _, high in samples), len(samples))
                found.append(dict(zip(KEYS, values)))
        return sorted(found, key=lambda row: list(WORKLOADS).index(row["workload"]))

    def clock(self, measure: str) -> float | None:
        """The median of a row of the clock workload: cycles per nanosecond or nanoseconds per empty turn."""
        for row in self.rows(["clock"]):
            if row["params"].get("measure") == measure and row["impl"] == "pirn":
                return row["median"] / 1e9 if measure == "frequency" else row["median"]
        return None


def number(value: float) -> str:
    if abs(value) >= 1e5:
        return f"{value:,.0f}"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) >= 100 else f"{value:.2f}"


def label(params: dict) -> str:
    return " ".join(f"{name}={value}" for name, value in params.items())


def tables(results: Results, workloads) -> list[tuple[str, list[str], list[list[str]]]]:
    """A title, a heading and the lines of each table: one per workload and parameters."""
    made = []
    groups = {}
    for row in results.rows(workloads):
        groups.setdefault((row["workload"], label(row["params"]), row["unit"]), []).append(row)
    for (workload, params, unit), rows in groups.items():
        rate = unit.endswith("/s")
        ours = next((row["median"] for row in rows if row["impl"] == "pirn"), None)
        cycles = results.clock("frequency") if workload in ("switch", "yield") else None
        heading = ["implementation", "median", "min", "max", "of pirn"]
        heading += ["cycles", "net"] if cycles else []
        lines = []
        for row in sorted(rows, key=lambda row: -row["median"] if rate else row["median"]):
            line = [row["impl"], number(row["median"]), number(row["min"]), number(row["max"])]
            line.append(f"{row['median'] / ours:.2f}" if ours else "-")
            if cycles:
                net = row["median"] - (results.clock("empty-loop") or 0)
                line += [f"{row['median'] * cycles:.1f}", f"{net * cycles:.1f}"]
            lines.append(line)
        made.append((f"{workload}{' ' + params if params else ''} ({unit})", heading, lines))
    return made


def text(results: Results, workloads) -> str:
    """The tables for a terminal."""
    parts = []
    for title, heading, lines in tables(results, workloads):
        widths = [max(len(line[i]) for line in [heading, *lines]) for i in range(len(heading))]
        part = [title]
        for line in [heading, *lines]:
            cells = [line[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(line[1:], widths[1:])]
            part.append("  " + "  ".join(cells))
        parts.append("\n".join(part))
    if (cycles := results.clock("frequency")) and (empty := results.clock("empty-loop")):
        parts.append(f"clock {cycles:.2f} GHz; an empty loop that clobbers as much as a switch: {empty:.2f} ns "
                     f"= {empty * cycles:.1f} cycles, which `net` leaves out")
    return "\n\n".join(parts)


def machine() -> dict[str, str]:
    """What the figures depend on."""
    cpu = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    codes = [re.search(rf"^{name}\s*: (\d+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
             for name in ("cpu family", "model")]
    release = re.search(r'^PRETTY_NAME="(.*)"$', Path("/etc/os-release").read_text(), re.MULTILINE)
    memory = re.search(r"^MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text(), re.MULTILINE)
    found = {
        "processor": f"{cpu.group(1) if cpu else platform.machine()}"
                     + (f" (family {codes[0].group(1)}, model {codes[1].group(1)})" if all(codes) else "")
                     + f", {os.cpu_count()} cores",
        "memory": f"{int(memory.group(1)) / 2**20:.0f} GiB" if memory else "unknown",
        "system": f"{release.group(1) if release else 'Linux'}, kernel {platform.release()}",
    }
    versions = {"C++": ["clang++-22", "--version"], "Go": ["go", "version"], "Rust": ["rustc", "--version"]}
    for name, command in versions.items():
        try:
            shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]
        except (OSError, subprocess.CalledProcessError, IndexError):
            continue
        found[name] = shown + (", -O3 -DNDEBUG, static" if name == "C++" else "")
    return found


PAGE = """# Performance

This page is made by `./dev bench --docs`; do not edit it. {rounds} rounds; each program runs alone on one core, and the
implementations take turns within a round. A program's figure for one round is the median of several timed blocks, in CPU
time except for http-hello; a table shows the median, the smallest and the largest of the rounds. "of pirn" is the median
divided by pirn's: for times and sizes more than 1 means that pirn needs less, for rates that pirn does less. Trust ratios
more than absolute figures: they come from one machine at one time.

{machine}
"""


def page(results: Results, workloads, rounds: int, skipped: list[str]) -> str:
    """docs/performance.md."""
    parts = [PAGE.format(rounds=rounds, machine="\n".join(f"- {name}: {what}" for name, what in machine().items()))]
    before = None
    for title, heading, lines in tables(results, workloads):
        workload = title.split()[0]
        if workload != before:
            parts.append(f"## {workload}\n\n{WORKLOADS[workload][0].upper()}{WORKLOADS[workload][1:]}.\n")
            before = workload
        rule = "|" + "|".join([" --- "] + [" ---: "] * (len(heading) - 1)) + "|"
        rows = "\n".join("| " + " | ".join(line) + " |" for line in [heading, *lines]).split("\n")
        parts.append(f"{title}\n\n" + "\n".join([rows[0], rule, *rows[1:]]) + "\n")
        if notes := [f"{impl}: {results.notes[workload, impl]}" for impl in (line[0] for line in lines)
                     if (workload, impl) in results.notes]:
            parts.append("; ".join(notes) + ".\n")
    if skipped:
        parts.append("## Not measured\n\n" + "\n".join(f"- {line}" for line in skipped) + "\n")
    return "\n".join(parts)


def write_page(results: Results, workloads, rounds: int, skipped: list[str]) -> Path:
    path = ROOT / "docs" / "performance.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(page(results, workloads, rounds, skipped))
    return path
