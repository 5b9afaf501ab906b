"""Pages of figures, all made from the last run of each workload on each machine, which docs/performance.json keeps
(records.py). docs/performance.md has the tables that help readers to decide, README.md a few of their columns. The pages
of all workloads, with pictures, lie in the build folder. Run as a program with a folder as its argument, this writes
those pages there."""

import sys
from pathlib import Path

import plot
import report
import reproduction
from records import DOCS, Record, Records
from rivals import ROOT, WORKLOADS

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
# What else rivals win at times, beside the columns above.
CONTESTED = [("threads, 2 workers", "threads", {"workers": 2}, "ns"), ("condvar, 2 workers", "condvar", {"workers": 2}, "ns"),
             ("queue, 4 pairs, 2 workers", "queue", {"pairs": 4, "workers": 2}, "ns"), ("fib, 2 workers", "fib", {"workers": 2}, "ns"),
             ("sort, 2 workers", "sort", {"workers": 2}, "ns"),
             *((f"ring, cycles of {n}, {count:,} coroutines", "ring", {"N": n, "coroutines": count, "D": 0, "P": 1}, "op/s")
               for n in (2, 8) for count in (80, 80_000)),
             *((f"a million sleeps: {op}", "timers", {"op": op}, "ns") for op in ("insert", "cancel", "fire")),
             ("queue, 1 pair, 2 workers", "queue", {"pairs": 1, "workers": 2}, "ns"), ("sort, 1 worker", "sort", {"workers": 1}, "ns"),
             ("hanoi, 1 disk", "hanoi", {"disks": 1}, "ns"), ("a store's first thousand requests", "callbacks", {"phase": "warm-up"}, "/s"),
             ("a new coroutine run and destroyed", "coro-spawn", {}, "ns"),
             *((f"a product of matrices, {count}", "matmul", {"workers": count}, "ns") for count in (1, 2)),
             ("memory of a million coroutines", "memory", {"state": "fresh", "units": 1_000_000}, "B")]
# What is no other library, but the same work without one.
BARE = ("loop", "serial", "bare", "limit", "in-stack", "fio")
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


def on_machine(records: Records, record: Record) -> str:
    """Returns words that name the machine, if there are several."""
    return f" Measured on {records.name(record)}." if len(records.records) > 1 else ""


def deciding_table(records: Records, title: str, sentence: str, columns) -> str:
    record = records.best(dict.fromkeys(workload for _, workload, _, _ in columns))
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
    return markdown(f"## {title}\n\n{sentence}{on_machine(records, record)}",
                    ["implementation", *(heading for heading, _, _ in found)], lines)


def machine_list(records: Records) -> str:
    """Returns a line for each property of the one machine, or for each of several machines."""
    if len(records.records) > 1:
        return "\n".join(f"- {records.name(record)}: " + "; ".join(f"{name} {what}" for name, what in record.machine.items())
                         for record in records.records)
    return "\n".join(f"- {name}: {what}" for record in records.records for name, what in record.machine.items())


def summary(records: Records) -> str:
    """Returns docs/performance.md."""
    tables = "\n".join(filter(None, (deciding_table(records, *table) for table in DECIDING)))
    return SUMMARY.format(machine=machine_list(records), tables=tables, count=len(records.workloads))


def two_digits(value: float) -> str:
    return f"{value:.1f}" if value < 9.95 else f"{value:,.0f}" if value >= 10_000 else f"{value:.0f}"


def readme_table(records: Records) -> str:
    """Returns the table of README.md, between its marks."""
    wanted = (("yield", {}, "ns"), ("spawn", {"mode": "batch"}, "ns"), ("spawn", {"mode": "single"}, "ns"),
              ("http-hello", {"connections": 100, "measure": "throughput"}, "requests/s"),
              ("http-hello", {"connections": 100, "measure": "p99"}, "ns"))
    record = records.best(dict.fromkeys(workload for workload, _, _ in wanted))
    columns = [column(record, *of) for of in wanted]
    lines = []
    for impl, title in README_ROWS.items():
        one, batch, single, rate, p99 = (values.get(impl, values.get(f"{impl}-http")) for values in columns)
        cells = [two_digits(one) if one else "", f"{two_digits(batch)}; {two_digits(single)}" if batch and single else "",
                 f"{rate / 1000:.0f} k; {p99 / 1e6:.2g} ms" if rate and p99 else ""]
        lines.append(" | ".join([title, *(f"**{text}**" if text and impl == "pirn" else text for text in cells)]))
    heading = ("| | one of 10 fibers yields, ns | spawn, run and join, ns: 1000 at a time; one at a time "
               "| `GET /hello`, server on one core: requests/s; p99 |\n|---|---:|---:|---:|\n")
    return heading + "".join(f"| {' '.join(line.split())} |\n" for line in lines)


def losses(records: Records) -> str:
    """Returns a table of what another program does better than the best form of pirn."""
    columns = [(f"{title}: {heading}", *of) for title, _, group in DECIDING for heading, *of in group] + CONTESTED
    lines = []
    for heading, workload, params, unit in columns:
        values = column(records.best([workload]), workload, params, unit)
        ours = [(value, impl) for impl, value in values.items() if impl.startswith("pirn") and impl != "pirn-limit"]
        others = [(value, impl) for impl, value in values.items() if not impl.startswith(("pirn", *BARE))]
        best = max if unit.endswith("/s") else min
        if ours and others and best(best(ours), best(others)) not in ours:
            (own, impl), (other, rival) = best(ours), best(others)
            lines.append([heading, f"{rival} {report.in_short(other, unit)}", f"{impl} {report.in_short(own, unit)}", unit])
    return markdown("Others are faster here:", ["", "the best of them", "the best of pirn", ""], lines) if lines else ""


def with_table(readme: str, records: Records) -> str:
    """Returns README.md with today's table between its marks; raises a ValueError if the marks are missing."""
    begin, end = (readme.find(mark) for mark in README_MARKS)
    if begin < 0 or end < begin:
        raise ValueError(f"README.md lacks the lines {README_MARKS[0].strip()} and {README_MARKS[1].strip()}")
    return readme[:begin + len(README_MARKS[0])] + readme_table(records) + "\n" + losses(records) + readme[end:]


def figures(record: Record, workload: str) -> list[str]:
    """Returns the parts of a page that show the run of one machine."""
    run, results = record.runs[workload], record.results
    tables = report.tables(results, [workload])
    parts = [markdown(*table) for table in tables]
    shown = dict.fromkeys(line[0] for _, _, lines in tables for line in lines)  # ordered, without duplicates
    if notes := [f"{impl}: {results.notes[workload, impl]}" for impl in shown if (workload, impl) in results.notes]:
        parts.append("; ".join(notes) + ".\n")
    for impl, of in run.get("outside", {}).items():
        parts.append(f"### {impl}\n\nRevision {of['revision']}, built outside of the tree, beside pirn of {of['date']}.\n")
        parts += [markdown(*table) for table in report.tables(report.Results(of["rows"]), [workload])]
    if run["counts"]:
        parts.append(f"## Counts\n\n{COUNTS}")
        parts += [markdown(*table) for table in report.count_tables(run["counts"])]
    if run["skipped"]:
        parts.append("## Not measured\n\n" + "\n".join(f"- {line}" for line in run["skipped"]) + "\n")
    return parts


def workload_page(records: Records, workload: str, pictures=()) -> str:
    what, (newest, *others) = WORKLOADS[workload], records.with_run(workload)
    parts = [f"# {workload}\n\n{what[0].upper()}{what[1:]}. {newest.when(workload)}{on_machine(records, newest)} "
             "See [all workloads](index.md).\n"]
    parts += [f"![{name}](plots/{name}.svg)\n" for name in pictures]
    parts += figures(newest, workload)
    parts.append(f"## What the sources had\n\n{reproduction.sentences(newest, workload)}")
    for record in others:
        parts += [f"## On {records.name(record)}\n\n{record.when(workload)}\n", *figures(record, workload)]
    return "\n".join(parts)


def pages(records: Records, pictures=()) -> dict[str, str]:
    """Returns the pages of all workloads by name; `pictures` are the names of the drawn ones."""
    found = {}
    for name in records.workloads:
        known = {title for title, _, _ in plot.pictures(name, records.with_run(name)[0].runs[name]["rows"])}
        found[f"{name}.md"] = workload_page(records, name, [picture for picture in pictures if picture in known])
    lines = [f"| [{name}]({name}.md) | {WORKLOADS[name]} |" for name in records.workloads]
    table = "\n".join(["| workload | what is measured |", "| --- | --- |", *lines])
    return {"index.md": f"# All workloads\n\n{machine_list(records)}\n\n{table}\n"} | found


def write_pages(records: Records, folder: Path, pictures=()) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages(records, pictures).items():
        (folder / name).write_text(text)


def write_docs(records: Records) -> None:
    """Writes docs/performance.md, docs/reproduction.md and the tables of README.md."""
    (DOCS / "performance.md").write_text(summary(records))
    (DOCS / "reproduction.md").write_text(reproduction.page(records, machine_list(records)))
    readme = ROOT / "README.md"
    readme.write_text(with_table(readme.read_text(), records))


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: page.py FOLDER", file=sys.stderr)
        return 2
    records, folder = Records.read(), Path(sys.argv[1])
    try:
        pictures = plot.draw_elsewhere(folder / "plots", records.drawn)
    except RuntimeError as reason:
        print(f"without pictures: {reason}", file=sys.stderr)
        pictures = []
    write_pages(records, folder, pictures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
