"""Pages of figures, all made from the last run of each workload, which docs/performance.json keeps. docs/performance.md
has the tables that help readers to decide, README.md a few of their columns. The pages of all workloads, with pictures,
lie in the build folder. Run as a program with a folder as its argument, this writes those pages there."""

import datetime
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import plot
import report
from rivals import ROOT, WORKLOADS

DOCS = ROOT / "docs"
KEPT = DOCS / "performance.json"


def machine() -> dict[str, str]:
    """Returns the properties of the machine on which the figures depend."""
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
        # Without the additions of distributors, which tell how it was built and not what it does.
        "system": f"{release.group(1) if release else 'Linux'}, kernel {platform.release().partition('-')[0]}",
    }
    versions = {"C++": ["clang++-22", "--version"], "Go": ["go", "version"], "Rust": ["rustc", "--version"],
                "Haskell": ["ghc", "--version"],
                "Erlang": ["erl", "-noshell", "-eval", "io:put_chars(erlang:system_info(system_version)), halt()."]}
    for name, command in versions.items():
        try:
            shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]
        except (OSError, subprocess.CalledProcessError, IndexError):
            continue
        found[name] = shown + (", -O3 -DNDEBUG, static" if name == "C++" else "")
    return found


class OtherMachine(Exception):
    """Raised if some workloads were measured on one machine and others would be on another."""


class Record:
    """The last run of each workload, all on one machine."""

    def __init__(self, here: dict[str, str], runs: dict[str, dict] | None = None):
        self.machine = here
        self.runs = runs or {}

    @staticmethod
    def read(path: Path, here: dict[str, str], anew) -> "Record":
        """Returns the kept runs of the workloads that are not measured again; raises OtherMachine if those are from
        elsewhere."""
        kept = json.loads(path.read_text()) if path.exists() else {"machine": here, "workloads": {}}
        runs = {name: run for name, run in kept["workloads"].items() if name in WORKLOADS and name not in anew}
        differing = [name for name in {**here, **kept["machine"]} if here.get(name) != kept["machine"].get(name)]
        if runs and differing:
            raise OtherMachine(f"{path} is from another machine, which differs in: {', '.join(differing)}; measure all "
                               "workloads anew")
        return Record(here, runs)

    @staticmethod
    def kept(path: Path = KEPT) -> "Record":
        """Returns the runs that `path` keeps, from any machine."""
        found = json.loads(path.read_text())
        return Record(found["machine"], found["workloads"])

    def take(self, workload: str, results: report.Results, counts=(), skipped=()) -> None:
        """Records a run of today; `counts` and `skipped` may be of other workloads as well."""
        notes = {impl: note for (of, impl), note in results.notes.items() if of == workload}
        of_this = re.compile(rf"{re.escape(workload)}/|(?!{'|'.join(map(re.escape, WORKLOADS))})")
        self.runs[workload] = {"date": datetime.date.today().isoformat(), "rows": results.rows([workload]), "notes": notes,
                               "counts": [row for row in counts if row["workload"] == workload],
                               "skipped": [line for line in skipped if of_this.match(line)]}

    def write(self, path: Path) -> None:
        """Writes one line for each row, so that a comparison of two such files is readable."""

        def text(run: dict) -> str:
            rows = ",\n   ".join(map(json.dumps, run["rows"]))
            rest = json.dumps({key: value for key, value in run.items() if key != "rows"})
            return f'{{"rows": [\n   {rows}],\n  {rest[1:]}'

        order = sorted(self.runs, key=list(WORKLOADS).index)
        workloads = ",\n ".join(f"{json.dumps(name)}: {text(self.runs[name])}" for name in order)
        path.write_text(f'{{"machine": {json.dumps(self.machine)},\n"workloads": {{\n {workloads}}}}}\n')

    @property
    def workloads(self) -> list[str]:
        return [name for name in WORKLOADS if name in self.runs and name != "clock"]

    @property
    def results(self) -> report.Results:
        return report.Results((row for run in self.runs.values() for row in run["rows"]),
                              {(name, impl): note for name, run in self.runs.items()
                               for impl, note in run["notes"].items()})

    def when(self, workload: str) -> str:
        """Returns a sentence about the run."""
        run = self.runs[workload]
        rounds = sorted({row["rounds"] for row in run["rows"]})
        spelled = f"{rounds[0]} to {rounds[-1]} rounds" if len(rounds) > 1 else f"{rounds[0]} rounds" if rounds else "Counts"
        return f"{spelled if rounds != [1] else '1 round'}, {run['date']}."


SUMMARY = """# Performance

`./dev bench` builds pirn and its rivals, runs them in turn on your machine and prints medians, smallest and largest rounds,
and ratios. This page is made of its last run by `./dev bench --docs`; do not edit it. A cell is the median, and in brackets
the ratio to pirn in the same column: for times and sizes more than 1 means that pirn needs less, for rates that pirn does
less. What a rival wins stands here too. Each program runs on one core, or on as many as it has workers, in CPU time but for
requests per second. Trust ratios more than absolute figures: they come from one machine at one time.

{machine}

{tables}
![yield](performance.svg)

There are {count} workloads. The pages of all of them, with the smallest and the largest round, a picture of each setting,
counts of instructions and what could not be measured, are made in the build folder by the same command, and are part of a
release. The figures themselves are in performance.json beside this page; bench/README.md says what each workload is.
"""

# The tables of docs/performance.md: a title, a sentence, and the columns as heading, workload, parameters and unit.
DECIDING = [
    ("Switching and starting", "Nanoseconds for a switch between two contexts, for a yield among 10 fibers, and for a fiber "
     "that is spawned, run and joined, 1000 at a time or one by one.",
     [("switch", "switch", {}, "ns"), ("yield", "yield", {}, "ns"), ("spawn, 1000", "spawn", {"mode": "batch"}, "ns"),
      ("spawn, 1", "spawn", {"mode": "single"}, "ns")]),
    ("Generators", "Nanoseconds for an element: of a sequence that is added up, of a recursion 20 deep, of a tree of a million "
     "nodes in order.",
     [("sum", "sum", {"form": "for"}, "ns"), ("hanoi", "hanoi", {"disks": 20}, "ns"), ("tree", "tree-walk", {"mode": "walk"}, "ns")]),
    ("Messages and locks", "Nanoseconds for a message through a channel and for a lock of one of 4096 mutexes, on one worker and "
     "on two.",
     [("ping-pong, 1", "chan", {"shape": "ping-pong", "workers": 1}, "ns"), ("fan-in, 1", "chan", {"shape": "fan-in", "workers": 1}, "ns"),
      ("ping-pong, 2", "chan", {"shape": "ping-pong", "workers": 2}, "ns"), ("fan-in, 2", "chan", {"shape": "fan-in", "workers": 2}, "ns"),
      ("mutex, 1", "mutex", {"workers": 1}, "ns"), ("mutex, 2", "mutex", {"workers": 2}, "ns")]),
    ("Fork and join", "Nanoseconds for a call of fib(40) that forks and for a leaf of a tree of a million, on one worker and on two.",
     [("fib40, 1", "fib40", {"workers": 1}, "ns"), ("fib40, 2", "fib40", {"workers": 2}, "ns"),
      ("skynet, 1", "skynet", {"workers": 1}, "ns"), ("skynet, 2", "skynet", {"workers": 2}, "ns")]),
    ("A million at once", "Bytes and nanoseconds for each of a million suspended fibers, and bytes for each of a million that have "
     "made a call which used 8 KiB of stack.",
     [("memory, B", "million", {"measure": "memory"}, "B"), ("creation, ns", "million", {"measure": "create"}, "ns"),
      ("deep, B", "memory", {"state": "deep", "units": 1_000_000}, "B")]),
    ("Echo server", "Messages of 64 bytes sent back in a second of the server's CPU time, and the 99th percentile of the time until one is "
     "back, over so many connections, the server on one core and its load on another. Ratios are to the default engine.",
     [*((f"{count}", "echo", {"bytes": 64, "connections": count, "measure": "per-cpu"}, "requests/s") for count in (8, 100, 1000)),
      ("p99 at 100, ns", "echo", {"bytes": 64, "connections": 100, "measure": "p99"}, "ns")]),
    ("Files", "Reads in a second of CPU time: 4 KiB from the page cache, 4 KiB with O_DIRECT by 32 readers; and the longest wait of "
     "a fiber beside 400 reads of 1 MiB that are not cached. Ratios are to the default engine.",
     [("cached", "file", {"access": "cached", "measure": "per-cpu"}, "requests/s"),
      ("O_DIRECT", "file", {"access": "direct", "depth": 32, "measure": "per-cpu"}, "requests/s"),
      ("longest wait, ns", "file", {"access": "cold", "measure": "longest-wait"}, "ns")]),
    ("Idle connections", "Bytes of the process for each of 10,000 connections of an echo server. Ratios are to the default engine.",
     [("memory, B", "idle-connections", {"connections": 10_000, "measure": "process"}, "B")]),
    ("Web server", "`GET /hello` over 100 connections, the server on one core and its load on another.",
     [("requests/s", "http-hello", {"connections": 100, "measure": "throughput"}, "requests/s"),
      ("p99, ns", "http-hello", {"connections": 100, "measure": "p99"}, "ns")]),
]
# The rows and columns of README.md's table.
README_ROWS = {"pirn": "**pirn**", "corosensei": "corosensei, no scheduler", "boost-fiber": "Boost.Fiber", "tokio": "tokio", "go": "Go",
               "pthread": "OS threads", "nginx": "nginx"}
README_MARKS = ("<!-- figures of docs/performance.json -->\n", "<!-- end of figures -->\n")


COUNTS = """Counted by cachegrind, per operation: start and end of the programs cancel out. Mispredicted branches and misses of
the first-level data cache (32 KiB, 8 ways) are those of its simulated processor, and the same on every machine.
"""


def markdown(title: str, heading: list[str], lines: list[list[str]]) -> str:
    rule = "|" + "|".join([" --- "] + [" ---: "] * (len(heading) - 1)) + "|"
    rows = ["| " + " | ".join(line) + " |" for line in [heading, *lines]]
    return f"{title}\n\n" + "\n".join([rows[0], rule, *rows[1:]]) + "\n"


def column(record: Record, workload: str, params: dict, unit: str) -> dict[str, float]:
    """Returns the medians of the implementations at one setting: that with these parameters, and with the fewest
    others."""
    rows = [row for row in record.runs.get(workload, {"rows": []})["rows"]
            if row["unit"] == unit and params.items() <= row["params"].items()]
    fewest = min((len(row["params"]) for row in rows), default=0)
    return {row["impl"]: row["median"] for row in rows if len(row["params"]) == fewest}


def deciding_table(record: Record, title: str, sentence: str, columns) -> str:
    found = [(heading, unit, column(record, workload, params, unit)) for heading, workload, params, unit in columns]
    found = [(heading, unit, values) for heading, unit, values in found if values]
    if not found:
        return ""

    def merit(impl: str) -> tuple:
        return tuple((impl not in values, values.get(impl, 0) * (-1 if unit.endswith("/s") else 1)) for _, unit, values in found)

    def cell(impl: str, unit: str, values: dict[str, float]) -> str:
        if impl not in values:
            return ""
        whole = values.get("pirn", values.get("pirn-epoll"))
        return report.in_short(values[impl], unit) + (f" ({values[impl] / whole:.2f})" if whole else "")

    impls = sorted(dict.fromkeys(impl for _, _, values in found for impl in values), key=merit)
    lines = [[f"**{impl}**" if impl == "pirn" else impl, *(cell(impl, unit, values) for _, unit, values in found)] for impl in impls]
    return markdown(f"## {title}\n\n{sentence}", ["implementation", *(heading for heading, _, _ in found)], lines)


def machine_list(record: Record) -> str:
    return "\n".join(f"- {name}: {what}" for name, what in record.machine.items())


def summary(record: Record) -> str:
    """Returns docs/performance.md."""
    tables = "\n".join(filter(None, (deciding_table(record, *table) for table in DECIDING)))
    return SUMMARY.format(machine=machine_list(record), tables=tables, count=len(record.workloads))


def two_digits(value: float) -> str:
    return f"{value:.1f}" if value < 9.95 else f"{value:,.0f}" if value >= 10_000 else f"{value:.0f}"


def readme_table(record: Record) -> str:
    """Returns the table of README.md, between its marks."""
    columns = [column(record, *of) for of in (("yield", {}, "ns"), ("spawn", {"mode": "batch"}, "ns"), ("spawn", {"mode": "single"}, "ns"),
                                              ("http-hello", {"connections": 100, "measure": "throughput"}, "requests/s"),
                                              ("http-hello", {"connections": 100, "measure": "p99"}, "ns"))]
    lines = []
    for impl, title in README_ROWS.items():
        one, batch, single, rate, p99 = (values.get(impl, values.get(f"{impl}-http")) for values in columns)
        cells = [two_digits(one) if one else "", f"{two_digits(batch)}; {two_digits(single)}" if batch and single else "",
                 f"{rate / 1000:.0f} k; {p99 / 1e6:.2g} ms" if rate and p99 else ""]
        lines.append(" | ".join([title, *(f"**{text}**" if text and impl == "pirn" else text for text in cells)]))
    heading = ("| | one of 10 fibers yields, ns | spawn, run and join, ns: 1000 at a time; one at a time "
               "| `GET /hello`, server on one core: requests/s; p99 |\n|---|---:|---:|---:|\n")
    return heading + "".join(f"| {' '.join(line.split())} |\n" for line in lines)


def with_table(readme: str, record: Record) -> str:
    """Returns README.md with today's table between its marks; raises a ValueError if the marks are missing."""
    begin, end = (readme.find(mark) for mark in README_MARKS)
    if begin < 0 or end < begin:
        raise ValueError(f"README.md lacks the lines {README_MARKS[0].strip()} and {README_MARKS[1].strip()}")
    return readme[:begin + len(README_MARKS[0])] + readme_table(record) + readme[end:]


def workload_page(record: Record, workload: str, pictures=()) -> str:
    what, results, run = WORKLOADS[workload], record.results, record.runs[workload]
    parts = [f"# {workload}\n\n{what[0].upper()}{what[1:]}. {record.when(workload)} See [all workloads](index.md).\n"]
    parts += [f"![{name}](plots/{name}.svg)\n" for name in pictures]
    tables = report.tables(results, [workload])
    parts += [markdown(*table) for table in tables]
    shown = dict.fromkeys(line[0] for _, _, lines in tables for line in lines)  # ordered, without duplicates
    if notes := [f"{impl}: {results.notes[workload, impl]}" for impl in shown if (workload, impl) in results.notes]:
        parts.append("; ".join(notes) + ".\n")
    if run["counts"]:
        parts.append(f"## Counts\n\n{COUNTS}")
        parts += [markdown(*table) for table in report.count_tables(run["counts"])]
    if run["skipped"]:
        parts.append("## Not measured\n\n" + "\n".join(f"- {line}" for line in run["skipped"]) + "\n")
    return "\n".join(parts)


def pages(record: Record, pictures=()) -> dict[str, str]:
    """Returns the pages of all workloads by name; `pictures` are the names of the drawn ones."""
    found = {}
    for name in record.workloads:
        known = {title for title, _, _ in plot.pictures(name, record.runs[name]["rows"])}
        found[f"{name}.md"] = workload_page(record, name, [picture for picture in pictures if picture in known])
    lines = [f"| [{name}]({name}.md) | {WORKLOADS[name]} |" for name in record.workloads]
    table = "\n".join(["| workload | what is measured |", "| --- | --- |", *lines])
    return {"index.md": f"# All workloads\n\n{machine_list(record)}\n\n{table}\n"} | found


def write_pages(record: Record, folder: Path, pictures=()) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages(record, pictures).items():
        (folder / name).write_text(text)


def write_docs(record: Record) -> None:
    """Writes docs/performance.md and the table of README.md."""
    (DOCS / "performance.md").write_text(summary(record))
    readme = ROOT / "README.md"
    readme.write_text(with_table(readme.read_text(), record))


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: page.py FOLDER", file=sys.stderr)
        return 2
    record, folder = Record.kept(), Path(sys.argv[1])
    try:
        pictures = plot.draw_elsewhere(folder / "plots", record.results.rows(record.workloads))
    except RuntimeError as reason:
        print(f"without pictures: {reason}", file=sys.stderr)
        pictures = []
    write_pages(record, folder, pictures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
