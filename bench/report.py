"""The output of a run of the bench: tables for the terminal, rows for JSON."""

import json
import statistics
from dataclasses import dataclass, field
from pathlib import Path

import gains
from rivals import WORKLOADS

# The implementation by which the others of a workload are divided, where it is not pirn.
BASES = {"hanoi": "callback", "client": "classic", "ring": "pirn-swap", "aco": "pirn-copy", "file": "pirn-epoll", "store": "callback-epoll"}
# Workloads measured at many values of a parameter: their tables have a column for each value.
SERIES = {"hanoi": "disks"}


@dataclass(frozen=True)
class Grid:
    """The presentation of a workload that is measured over several parameters."""

    columns: tuple[str, ...]  # a table has a column for each of their values
    follows: tuple[str, ...] = ()  # parameters that depend on those
    panels: tuple[str, ...] = ()  # a picture has a panel for each of their values
    x: str = ""  # the parameter along the axis of a panel
    usual: dict = field(default_factory=dict)  # values at which a panel shows more than pirn's own
    drawn: dict = field(default_factory=dict)  # the only values of a parameter that are drawn


OF_SERVERS = Grid(("bytes", "connections"), panels=("measure", "bytes"), x="connections")
GRIDS = {
    "echo": OF_SERVERS,
    "unix": OF_SERVERS,
    "udp": OF_SERVERS,
    "store": Grid(("connections",), panels=("measure",), x="connections"),
    "http-hello": Grid(("connections",), panels=("measure",), x="connections"),
    "file": Grid(("access", "depth"), ("bytes",), ("measure",), "depth", drawn={"access": ("direct",)}),
    "ring": Grid(("coroutines",), ("M",), ("N",), "coroutines", {"D": 0, "P": 1}),
    "threadring": Grid(("processes",), x="processes"),
    "aco": Grid(("coroutines", "image"), (), ("op", "coroutines"), "image",
                {"order": "creation", "fpenv": "shared", "malloc": "glibc"}, {"op": ("resume", "peak")}),
}

KEYS = ("workload", "impl", "params", "unit", "median", "min", "max", "rounds")
UNITS = ("ns", "B", "MiB", "%", "per yield")


class Results:
    """The values of every row over all rounds."""

    def __init__(self, rows=(), notes=()):
        """`rows` are finished ones, of an earlier run."""
        self._finished = list(rows)
        self._samples = {}
        self.notes = dict(notes)

    def add(self, row: dict, workload: str, impl: str) -> None:
        """Takes one row of one round; raises a ValueError if it is not a row."""
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
        """Drops all rows of implementations that turned out to be broken."""
        self._samples = {key: samples for key, samples in self._samples.items()
                         if key[0] != workload or key[1] not in impls}

    def rows(self, workloads) -> list[dict]:
        """Returns one object per implementation and parameters, with the keys of KEYS."""
        found = [row for row in self._finished if row["workload"] in workloads]
        for (workload, impl, params, unit), samples in self._samples.items():
            if workload in workloads:
                values = (workload, impl, json.loads(params), unit, statistics.median(value for value, _, _ in samples),
                          min(low for _, low, _ in samples), max(high for _, _, high in samples), len(samples))
                found.append(dict(zip(KEYS, values)))
        return sorted(found, key=lambda row: list(WORKLOADS).index(row["workload"]))

    def pairs(self, workloads):
        """Yields the key of each row of a revision (--against) that today's pirn has too, today's values by round, and
        the revision's."""
        for (workload, impl, params, unit), samples in self._samples.items():
            if workload in workloads and "@" in impl:
                before = [value for value, _, _ in samples]
                now = [value for value, _, _ in self._samples.get((workload, impl.partition("@")[0], params, unit), [])]
                if len(now) == len(before) and all(now) and all(before):
                    yield (workload, impl, label(json.loads(params)), unit), now, before

    def clock(self, measure: str) -> float | None:
        """Returns the median of a row of the clock workload: cycles per nanosecond or nanoseconds per empty turn."""
        for row in self.rows(["clock"]):
            if row["params"].get("measure") == measure and row["impl"] == "pirn":
                return row["median"] / 1e9 if measure == "frequency" else row["median"]
        return None


def number(value: float) -> str:
    if abs(value) >= 1e5:
        return f"{value:,.0f}"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) >= 100 else f"{value:.2f}"


def in_short(value: float, unit: str) -> str:
    """As `number`, but rates in millions."""
    return f"{value / 1e6:.3g} M" if unit.endswith("/s") and value >= 1e6 else number(value)


def label(params: dict) -> str:
    return " ".join(f"{name}={value}" for name, value in params.items())


def base(workload: str, impls) -> str:
    """Returns the implementation by which others are divided: pirn, or the first of its variants, unless the workload
    names it."""
    variants = sorted(impl for impl in impls if impl.startswith("pirn-"))
    return BASES.get(workload) or next(iter(variants if variants and "pirn" not in impls else ["pirn"]))


def grouped(rows: list[dict]) -> dict[tuple[str, str, str], list[dict]]:
    """Returns the rows that one table compares, by workload, parameters and unit."""
    groups = {}
    for row in rows:
        groups.setdefault((row["workload"], label(row["params"]), row["unit"]), []).append(row)
    return groups


def series(rows: list[dict], workload: str) -> dict[str, dict[int, dict]]:
    """Returns the rows of a workload by implementation and value of its parameter, both in order."""
    found = {}
    for row in sorted(rows, key=lambda row: row["params"].get(SERIES[workload], 0)):
        if row["workload"] == workload and SERIES[workload] in row["params"]:
            found.setdefault(row["impl"], {})[row["params"][SERIES[workload]]] = row
    return found


def series_table(rows: list[dict], workload: str) -> tuple[str, list[str], list[list[str]]]:
    """Returns the results of each implementation at some values of the parameter, divided by the base at the same
    value."""
    lines = series(rows, workload)
    values = sorted({value for line in lines.values() for value in line})
    values = [value for value in values if value % 5 == 0 or value in (values[0], values[-1])]
    reference = base(workload, lines)

    def cell(line, value) -> str:
        whole = lines.get(reference, {}).get(value)
        return f"{line[value]['median'] / whole['median']:.2f}" if whole and value in line else "-"

    order = sorted(lines, key=lambda impl: lines[impl].get(values[-1], {}).get("median", float("inf")))
    return (f"{workload} by {SERIES[workload]} (of {reference})",
            ["implementation"] + [f"{SERIES[workload]}={value}" for value in values],
            [[impl] + [cell(lines[impl], value) for value in values] for impl in order])


def grid_tables(rows: list[dict], workload: str) -> list[tuple[str, list[str], list[list[str]]]]:
    """Returns a table for each choice of the parameters that are not its columns: medians, and in brackets those of the
    base."""
    grid = GRIDS[workload]
    groups = {}
    for row in rows:
        fixed = {name: value for name, value in row["params"].items() if name not in grid.columns + grid.follows}
        column = tuple(row["params"].get(name, 0) for name in grid.columns)
        groups.setdefault((label(fixed), row["unit"]), {}).setdefault(row["impl"], {})[column] = row["median"]
    made = []
    for (fixed, unit), lines in sorted(groups.items()):
        columns = sorted({column for line in lines.values() for column in line})
        reference = base(workload, lines)
        whole = lines.get(reference, {})

        def cell(line, column) -> str:
            if column not in line:
                return "-"
            share = f" ({line[column] / whole[column]:.2f})" if whole.get(column) else ""
            return in_short(line[column], unit) + share

        def merit(impl) -> float:
            shares = [value / whole[column] for column, value in lines[impl].items() if whole.get(column)]
            return statistics.mean(shares) * (-1 if unit.endswith("/s") else 1) if shares else float("inf")

        made.append((" ".join(filter(None, (workload, fixed, f"({unit}; in brackets: of {reference})"))),
                     ["implementation"] + [label(dict(zip(grid.columns, column))) for column in columns],
                     [[impl] + [cell(lines[impl], column) for column in columns] for impl in sorted(lines, key=merit)]))
    return made


def tables(results: Results, workloads) -> list[tuple[str, list[str], list[list[str]]]]:
    """Returns a title, a heading and the lines of each table: one per workload and parameters. A series has one for the
    largest value only, after one over all values. A grid has its own tables."""
    made = []
    rows_of = {workload: series(results.rows(workloads), workload) for workload in SERIES}
    largest = {workload: max((value for line in found.values() for value in line), default=None)
               for workload, found in rows_of.items()}
    for workload in GRIDS:
        made += grid_tables(results.rows([workload]) if workload in workloads else [], workload)
    for (workload, params, unit), rows in grouped(results.rows(workloads)).items():
        if workload in GRIDS:
            continue
        if largest.get(workload) is not None:
            if rows[0]["params"].get(SERIES[workload]) != largest[workload]:
                continue
            made.append(series_table(results.rows([workload]), workload))
        if workload == "client" and not any(title.startswith("client") for title, _, _ in made):
            made += gains.tables(results.rows([workload]))
        rate = unit.endswith("/s")
        reference = base(workload, [row["impl"] for row in rows])
        ours = next((row["median"] for row in rows if row["impl"] == reference), None)
        cycles = results.clock("frequency") if workload in ("switch", "yield") else None
        heading = ["implementation", "median", "min", "max", f"of {reference}"]
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


def paired_tables(results: Results, workloads) -> list[tuple[str, list[str], list[list[str]]]]:
    """Returns a table with the cost of each implementation divided by its cost at the revision of --against, round by
    round: what makes a whole round slow, as a clock that changes, is not in these ratios."""
    made = {}
    for (workload, impl, params, unit), now, before in results.pairs(workloads):
        own, _, revision = impl.partition("@")
        over, under = (before, now) if unit.endswith("/s") else (now, before)
        shares = sorted(a / b for a, b in zip(over, under))
        cells = [statistics.median(shares), shares[len(shares) // 4], shares[len(shares) * 3 // 4]]
        made.setdefault(revision, []).append(
            [" ".join(filter(None, (workload, params))), own, *(f"{cell:.3f}" for cell in cells), str(len(shares))])
    return [(f"cost divided by that of {revision}, round by round (above 1: slower than it was)",
             ["workload", "implementation", "median", "lower quartile", "upper quartile", "rounds"], lines)
            for revision, lines in made.items()]


def count_tables(counts: list[dict]) -> list[tuple[str, list[str], list[list[str]]]]:
    """As `tables`, with the results of --counts."""
    groups = {}
    for row in counts:
        groups.setdefault((row["workload"], label(row["params"]), row["per"]), []).append(row)
    names = {"instructions": "instructions", "branches": "branches", "mispredicted": "mispredicted",
             "d1_misses": "D1 misses", "ll_misses": "LL misses", "cycles": "cycles"}
    made = [(f"{workload}{' ' + params if params else ''} (count per {per})",
             ["implementation", *(title for name, title in names.items() if any(name in row for row in rows))],
             [[row["impl"]] + [f"{row[name]:.2f}" if name in row else "" for name in names if any(name in each for each in rows)]
              for row in sorted(rows, key=lambda row: row["instructions"])])
            for (workload, params, per), rows in groups.items()]
    return made + gains.count_tables(counts)


def text(results: Results, workloads, counts=()) -> str:
    """Returns the tables for a terminal."""
    parts = []
    found = [*tables(results, workloads), *paired_tables(results, workloads), *count_tables(counts)]
    for title, heading, lines in found:
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
