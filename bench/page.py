"""docs/performance.md, the pages below it, and what they are made of: each workload's last run, in performance.json."""

import datetime
import json
import os
import platform
import re
import subprocess
from pathlib import Path

import report
from rivals import ROOT, WORKLOADS

DOCS = ROOT / "docs"
KEPT = DOCS / "performance.json"


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
        # Without what distributors add, which says how it was built and not what it does.
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
    """Some workloads were measured on one machine, others would be on another."""


class Record:
    """The last run of each workload, all on one machine."""

    def __init__(self, here: dict[str, str], runs: dict[str, dict] | None = None):
        self.machine = here
        self.runs = runs or {}

    @staticmethod
    def read(path: Path, here: dict[str, str], anew) -> "Record":
        """What `path` keeps of the workloads that are not measured anew; OtherMachine when that is from elsewhere."""
        kept = json.loads(path.read_text()) if path.exists() else {"machine": here, "workloads": {}}
        runs = {name: run for name, run in kept["workloads"].items() if name in WORKLOADS and name not in anew}
        differing = [name for name in {**here, **kept["machine"]} if here.get(name) != kept["machine"].get(name)]
        if runs and differing:
            raise OtherMachine(f"{path} is of another machine, which differs in: {', '.join(differing)}; measure all "
                               "workloads anew")
        return Record(here, runs)

    def take(self, workload: str, results: report.Results, counts=(), skipped=()) -> None:
        """Notes a run of today; `counts` and `skipped` may be of other workloads as well."""
        notes = {impl: note for (of, impl), note in results.notes.items() if of == workload}
        of_this = re.compile(rf"{re.escape(workload)}/|(?!{'|'.join(map(re.escape, WORKLOADS))})")
        self.runs[workload] = {"date": datetime.date.today().isoformat(), "rows": results.rows([workload]), "notes": notes,
                               "counts": [row for row in counts if row["workload"] == workload],
                               "skipped": [line for line in skipped if of_this.match(line)]}

    def write(self, path: Path) -> None:
        """A line for each row, so that a comparison of two such files can be read."""

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
        """A sentence on the run."""
        run = self.runs[workload]
        rounds = sorted({row["rounds"] for row in run["rows"]})
        spelled = f"{rounds[0]} to {rounds[-1]} rounds" if len(rounds) > 1 else f"{rounds[0]} rounds" if rounds else "Counts"
        return f"{spelled if rounds != [1] else '1 round'}, {run['date']}."


PAGE = """# Performance

These pages are made by `./dev bench --docs`; do not edit them. Each program runs alone on one core, and the implementations
take turns within a round. A program's figure for one round is the median of several timed blocks, in CPU time except for
http-hello; a table shows the median, the smallest and the largest of the rounds. "of pirn" is the median divided by pirn's,
and so for any other implementation that a column names: for times and sizes more than 1 means that pirn needs less, for
rates that pirn does less. Trust ratios more than absolute figures: they come from one machine at one time. The same
figures are in performance.json beside this page.

{machine}

{workloads}
"""


COUNTS = """Counted by cachegrind, per operation: start and end of the programs cancel out. Mispredicted branches and misses of
the first-level data cache (32 KiB, 8 ways) are those of its simulated processor, and the same on every machine.
"""


def markdown(title: str, heading: list[str], lines: list[list[str]]) -> str:
    rule = "|" + "|".join([" --- "] + [" ---: "] * (len(heading) - 1)) + "|"
    rows = ["| " + " | ".join(line) + " |" for line in [heading, *lines]]
    return f"{title}\n\n" + "\n".join([rows[0], rule, *rows[1:]]) + "\n"


def workload_page(record: Record, workload: str, plotted: bool) -> str:
    what, results, run = WORKLOADS[workload], record.results, record.runs[workload]
    parts = [f"# {workload}\n\n{what[0].upper()}{what[1:]}. {record.when(workload)} See [performance](../performance.md).\n"]
    if plotted:
        parts.append(f"![{workload}](../plots/{workload}.svg)\n")
    tables = report.tables(results, [workload])
    parts += [markdown(*table) for table in tables]
    shown = dict.fromkeys(line[0] for _, _, lines in tables for line in lines)  # an ordered set of what the tables name
    if notes := [f"{impl}: {results.notes[workload, impl]}" for impl in shown if (workload, impl) in results.notes]:
        parts.append("; ".join(notes) + ".\n")
    if run["counts"]:
        parts.append(f"## Counts\n\n{COUNTS}")
        parts += [markdown(*table) for table in report.count_tables(run["counts"])]
    if run["skipped"]:
        parts.append("## Not measured\n\n" + "\n".join(f"- {line}" for line in run["skipped"]) + "\n")
    return "\n".join(parts)


def pages(record: Record, plots=()) -> dict[str, str]:
    """What lies in docs/ by its path there: a page for each workload; `plots` are those that have a picture."""
    found = {f"performance/{name}.md": workload_page(record, name, name in plots) for name in record.workloads}
    machine = "\n".join(f"- {name}: {what}" for name, what in record.machine.items())
    lines = [f"| [{name}](performance/{name}.md) | {WORKLOADS[name]} |" for name in record.workloads]
    table = "\n".join(["| workload | what is measured |", "| --- | --- |", *lines])
    return {"performance.md": PAGE.format(machine=machine, workloads=table)} | found


def write_pages(record: Record, folder: Path, plots=()) -> None:
    for name, text in pages(record, plots).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
