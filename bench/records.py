"""The last run of each workload on each machine, as docs/performance.json keeps it."""

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


class Record:
    """The last run of each workload on one machine. Programs from outside the tree keep their last rows, with those of
    pirn from the same run, until they are measured again."""

    def __init__(self, here: dict[str, str], runs: dict[str, dict] | None = None):
        self.machine = here
        self.runs = runs or {}

    def take(self, workload: str, results: report.Results, counts=(), skipped=(), outside=None) -> None:
        """Records a run of today; `counts` and `skipped` may be of other workloads as well. `outside` has the revision of
        each implementation that is not of the tree."""
        outside = outside or {}
        today = datetime.date.today().isoformat()
        notes = {impl: note for (of, impl), note in results.notes.items() if of == workload}
        of_this = re.compile(rf"{re.escape(workload)}/|(?!{'|'.join(map(re.escape, WORKLOADS))})")
        rows = results.rows([workload])
        base = report.base(workload, [row["impl"] for row in rows])
        kept = self.runs.get(workload, {}).get("outside", {}) | {
            impl: {"date": today, "revision": revision, "rows": [row for row in rows if row["impl"] in (base, impl)]}
            for impl, revision in outside.items() if any(row["impl"] == impl for row in rows)}
        self.runs[workload] = {"date": today, "rows": [row for row in rows if row["impl"] not in outside], "notes": notes,
                               "counts": [row for row in counts if row["workload"] == workload],
                               "skipped": [line for line in skipped if of_this.match(line)], "outside": kept}

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


class Records:
    """The runs of all machines. A table has those of one machine only."""

    def __init__(self, records: list[Record] | None = None):
        self.records = records or []

    @staticmethod
    def read(path: Path = KEPT) -> "Records":
        found = json.loads(path.read_text())["machines"] if path.exists() else []
        return Records([Record(each["machine"], {name: run for name, run in each["workloads"].items() if name in WORKLOADS})
                        for each in found])

    def of(self, here: dict[str, str]) -> Record:
        """Returns the record of a machine, which is new if any of the properties on which figures depend is."""
        for record in self.records:
            if record.machine == here:
                return record
        self.records.append(Record(here))
        return self.records[-1]

    def replace(self, record: Record, workloads) -> None:
        """Drops the runs of these workloads on the same processor with other compilers or another system."""
        for other in self.records:
            if other is not record and other.machine.get("processor") == record.machine.get("processor"):
                other.runs = {name: run for name, run in other.runs.items() if name not in workloads}
        self.records = [each for each in self.records if each.runs]

    def best(self, workloads) -> Record:
        """Returns the record that has most of the workloads, and of several such ones that with the newest run."""
        def merit(record: Record) -> tuple:
            dates = [record.runs[name]["date"] for name in workloads if name in record.runs]
            return len(dates), max(dates, default="")
        return max(self.records, key=merit, default=Record({}))

    def with_run(self, workload: str) -> list[Record]:
        """Returns the records that have a workload, the newest first."""
        return sorted((record for record in self.records if workload in record.runs),
                      key=lambda record: record.runs[workload]["date"], reverse=True)

    def name(self, record: Record) -> str:
        return f"machine {self.records.index(record) + 1}"

    @property
    def workloads(self) -> list[str]:
        return [name for name in WORKLOADS if any(name in record.workloads for record in self.records)]

    @property
    def drawn(self) -> list[dict]:
        """The rows of which pictures are made: of each workload the newest run."""
        return [row for name in self.workloads for row in self.with_run(name)[0].results.rows([name])]

    def write(self, path: Path) -> None:
        """Writes one line for each row, so that a comparison of two such files is readable."""
        def rows(of: list[dict]) -> str:
            return "[\n   " + ",\n   ".join(map(json.dumps, of)) + "]"

        def text(run: dict) -> str:
            rest = json.dumps({key: value for key, value in run.items() if key not in ("rows", "outside")})
            outside = ",\n   ".join(f'{json.dumps(impl)}: {{"date": {json.dumps(of["date"])}, "revision": {json.dumps(of["revision"])}, '
                                    f'"rows": {rows(of["rows"])}}}' for impl, of in sorted(run.get("outside", {}).items()))
            return f'{{"rows": {rows(run["rows"])},\n  "outside": {{{outside}}},\n  {rest[1:]}'

        def machine_text(record: Record) -> str:
            order = sorted(record.runs, key=list(WORKLOADS).index)
            workloads = ",\n ".join(f"{json.dumps(name)}: {text(record.runs[name])}" for name in order)
            return f'{{"machine": {json.dumps(record.machine)},\n"workloads": {{\n {workloads}}}}}'

        path.write_text('{"machines": [\n' + ",\n".join(map(machine_text, self.records)) + "]}\n")
