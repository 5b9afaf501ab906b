"""Draws the rows of a run, one SVG for each setting of a workload: bars for medians, whiskers from the smallest to the
largest round. An implementation has one colour everywhere, and an axis that is not logarithmic begins at 0.

Run as a program, with the folder as its argument and the rows of --json on its standard input, because the Python that
has matplotlib need not be the one that runs the bench.
"""

import functools
import json
import math
import os
import re
import subprocess
import sys
import zlib
from pathlib import Path

import report
from rivals import is_ours

# pirn and its variants have warm colours, all others cold ones. The name of an implementation without an entry here
# decides its colour.
COLOURS = {
    "pirn": "#c2410c", "pirn-migratable": "#ea580c", "pirn-plugin": "#f97316", "pirn-local": "#d97706", "pirn-frame": "#b45309",
    "pirn-foreach": "#f59e0b", "pirn-copy": "#9a3412", "pirn-swap": "#dc2626", "pirn-c": "#b91c1c", "pirn-co": "#ef4444",
    "go": "#0891b2", "go-http": "#0891b2", "tokio": "#7c3aed", "boost-fiber": "#1d4ed8", "boost-context": "#3b82f6",
    "boost-coroutine2": "#60a5fa", "boost-fcontext": "#93c5fd", "corosensei": "#0f766e", "cpp20": "#4d7c0f", "pthread": "#64748b",
    "pth": "#94a3b8", "st": "#475569", "nginx": "#15803d", "callback": "#334155", "openmp": "#a21caf", "rayon": "#db2777",
    "tbb": "#6d28d9", "erlang": "#be185d", "ghc": "#86198f", "serial": "#1f2937",
    "pirn-epoll": "#fb7185", "pirn-uring": "#be123c", "asio": "#1e40af", "asio-co": "#2563eb", "libuv": "#0d9488",
    "limit-epoll": "#9ca3af", "limit-uring": "#4b5563", "may-minihttp": "#c026d3",
}
WARM = ("#fb923c", "#e11d48", "#fbbf24", "#f43f5e", "#92400e", "#fda4af", "#7c2d12", "#fdba74")
COLD = ("#14b8a6", "#0284c7", "#8b5cf6", "#65a30d", "#6b7280", "#06b6d4", "#4f46e5", "#059669")
LOG_FROM = 10  # scales are logarithmic from this ratio of the largest to the smallest


def colour_of(impl: str) -> str:
    """Returns the colour of an implementation, the same in every picture."""
    spare = WARM if is_ours(impl) else COLD
    return COLOURS.get(impl) or spare[zlib.crc32(impl.encode()) % len(spare)]


def plain(axis) -> None:
    """Writes the numbers at the ticks in full."""
    axis.set_major_formatter(lambda value, _: f"{value:,.10g}")


def logarithmic(axis) -> None:
    """Sets ticks at 1, 2, 5, 10 and so on."""
    from matplotlib import ticker

    axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axis.set_minor_locator(ticker.NullLocator())
    plain(axis)


def spread(places: list[float], gap: float) -> list[float]:
    """Returns the places in rising order, moved up where needed so that each is at least `gap` above the one below."""
    moved = []
    for place in places:
        moved.append(max(place, moved[-1] + gap) if moved else place)
    return moved


def bars(axes, title: str, rows: list[dict]) -> None:
    """Draws the implementations of one table, the best at the top."""
    rate = rows[0]["unit"].endswith("/s")
    rows = sorted(rows, key=lambda row: row["median"], reverse=not rate)
    medians = [row["median"] for row in rows]
    whiskers = [[row["median"] - row["min"] for row in rows], [row["max"] - row["median"] for row in rows]]
    axes.barh([row["impl"] for row in rows], medians, xerr=whiskers, height=0.7, error_kw={"lw": 1, "capsize": 2.5},
              color=[colour_of(row["impl"]) for row in rows], ecolor="#111827")
    largest = max(row["max"] for row in rows)
    if min(medians) > 0 and max(medians) / min(medians) >= LOG_FROM:
        axes.set_xscale("log")
        lowest = min(row["min"] for row in rows if row["min"] > 0) / 2
        axes.set_xlim(lowest, largest * (largest / lowest) ** 0.12)
        logarithmic(axes.xaxis)
    else:
        axes.set_xlim(min(0, *medians), largest * 1.12)
        plain(axes.xaxis)
    for place, row in enumerate(rows):
        axes.annotate(report.number(row["median"]), (row["max"], place), xytext=(5, 0), textcoords="offset points",
                      va="center", fontsize=8, color="#111827")
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_xlabel(rows[0]["unit"] + (", more is better" if rate else ", less is better"), fontsize=8)
    axes.grid(axis="x", color="#e5e7eb", lw=0.6)


def lines(axes, workload: str, rows: list[dict]) -> None:
    """Draws the implementations over the parameter of a series, divided by the base's median at the same value."""
    found = report.series(rows, workload)
    reference = report.base(workload, found)
    whole = {value: row["median"] for value, row in found.get(reference, {}).items()}
    ends = []
    for impl in sorted(found, key=lambda impl: (not is_ours(impl), impl)):
        points = [(value, row) for value, row in found[impl].items() if whole.get(value)]
        if not points:
            continue
        x = [value for value, _ in points]
        y = [row["median"] / whole[value] for value, row in points]
        whiskers = [[(row["median"] - row["min"]) / whole[value] for value, row in points],
                    [(row["max"] - row["median"]) / whole[value] for value, row in points]]
        colour = colour_of(impl)
        axes.errorbar(x, y, yerr=whiskers, color=colour, lw=1.6, elinewidth=0.8, capsize=2, marker="o", ms=3)
        ends.append((math.log(y[-1]), x[-1], impl, colour))
    axes.set_yscale("log")
    logarithmic(axes.yaxis)
    low, high = (math.log(limit) for limit in axes.get_ylim())
    ends.sort()
    for place, (_, x, impl, colour) in zip(spread([end[0] for end in ends], (high - low) / 24), ends):
        axes.annotate(impl, (x, math.exp(place)), xytext=(7, 0), textcoords="offset points", va="center", fontsize=8,
                      color=colour)
    axes.set_xlabel(report.SERIES[workload], fontsize=8)
    axes.set_ylabel(f"time for each operation, of {reference}", fontsize=8)
    axes.set_title(f"{workload} by {report.SERIES[workload]}", fontsize=10, loc="left")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(color="#e5e7eb", lw=0.6)
    axes.margins(x=0.22)  # room for the names at the right
    axes.set_xlim(left=0)


def grid_lines(axes, title: str, rows: list[dict], grid) -> None:
    """Draws the implementations over the parameter of a panel, in absolute figures."""
    found = {}
    for row in rows:
        unusual = {name: row["params"][name] for name, value in grid.usual.items() if row["params"].get(name) != value}
        if not unusual or is_ours(row["impl"]):
            found.setdefault(" ".join(filter(None, (row["impl"], report.label(unusual)))), []).append(row)
    ends = []
    for name in sorted(found, key=lambda name: (not is_ours(name), name)):
        points = sorted(found[name], key=lambda row: row["params"][grid.x])
        x = [row["params"][grid.x] for row in points]
        y = [row["median"] for row in points]
        whiskers = [[row["median"] - row["min"] for row in points], [row["max"] - row["median"] for row in points]]
        ours = is_ours(name)
        colour = colour_of(points[0]["impl"])
        axes.errorbar(x, y, yerr=whiskers, color=colour, lw=1.8 if ours else 1.1, ls="-" if name == points[0]["impl"] else "--", elinewidth=0.8,
                      capsize=2, marker="o", ms=3)
        ends.append((math.log(y[-1]), x[-1], name, colour))
    axes.set_xscale("log")
    axes.set_yscale("log")
    logarithmic(axes.yaxis)
    plain(axes.xaxis)
    low, high = (math.log(limit) for limit in axes.get_ylim())
    ends.sort()
    for place, (_, x, name, colour) in zip(spread([end[0] for end in ends], (high - low) / 26), ends):
        axes.annotate(name, (x, math.exp(place)), xytext=(7, 0), textcoords="offset points", va="center", fontsize=8,
                      color=colour)
    axes.set_xlabel(grid.x, fontsize=8)
    axes.set_ylabel(rows[0]["unit"], fontsize=8)
    axes.set_title(title, fontsize=10, loc="left")
    axes.grid(color="#e5e7eb", lw=0.6)
    axes.margins(x=0.3)  # room for the names at the right
    axes.set_xlim(left=min(row["params"][grid.x] for row in rows) * 0.7)


def grid_panels(rows: list[dict], grid) -> dict[str, list[dict]]:
    """Returns the rows of each panel, by its title: those that have more than one value of the parameter."""
    panels = {}
    for row in rows:
        params = row["params"]
        if params.get(grid.x, 0) > 0 and all(params.get(name) in values for name, values in grid.drawn.items()):
            panels.setdefault(report.label({name: params[name] for name in grid.panels}), []).append(row)
    return {title: members for title, members in panels.items() if len({row["params"][grid.x] for row in members}) > 1}


def pictures(workload: str, rows: list[dict]) -> list[tuple[str, float, object]]:
    """Returns the pictures of one workload, one for each setting: name, height in inches, and the function that fills
    given axes."""
    if workload in report.SERIES:
        return [(workload, 4.2, lambda axes: lines(axes, workload, rows))]
    if workload in report.GRIDS:
        grid = report.GRIDS[workload]
        return [(file_name(workload, title), 4.4,
                 functools.partial(grid_lines, title=f"{workload} {title}".strip(), rows=group, grid=grid))
                for title, group in grid_panels(rows, grid).items()]
    groups = report.grouped(rows)
    settings = [params for _, params, _ in groups]
    return [(file_name(workload, params, unit if settings.count(params) > 1 else ""), 0.85 + 0.24 * len(group),
             functools.partial(bars, title=" ".join(filter(None, (workload, params, f"({unit})"))), rows=group))
            for (_, params, unit), group in groups.items()]


def file_name(workload: str, *setting: str) -> str:
    """Returns a name for the picture of one setting, of letters, digits and - only."""
    return "-".join([workload, *(word for part in setting for word in re.findall(r"[\w.]+", part))])


def draw(folder: Path, rows: list[dict]) -> list[str]:
    """Writes a picture for each setting of each workload that has rows. Returns their names without .svg."""
    import matplotlib

    matplotlib.use("svg")
    # The rows determine the file: no date in it, no random names, and text that stays text.
    matplotlib.rcParams.update({"svg.hashsalt": "pirn", "svg.fonttype": "none", "font.family": "sans-serif",
                                "font.sans-serif": ["DejaVu Sans"]})
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for workload in dict.fromkeys(row["workload"] for row in rows if row["workload"] != "clock"):
        for name, height, fill in pictures(workload, [row for row in rows if row["workload"] == workload]):
            made, axes = pyplot.subplots(figsize=(7.5, height), layout="constrained")
            fill(axes)
            axes.tick_params(labelsize=8, length=2)
            axes.set_axisbelow(True)
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)
            made.savefig(folder / f"{name}.svg", metadata={"Date": None})
            pyplot.close(made)
            drawn.append(name)
    return drawn


@functools.cache
def interpreter() -> str | None:
    """Returns a Python that has matplotlib, or None."""
    for python in dict.fromkeys((sys.executable, "/usr/bin/python3", os.environ.get("PIRN_PLOT_PYTHON", ""))):
        found = python and Path(python).exists() and subprocess.run(
            [python, "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('matplotlib') is None)"])
        if found and found.returncode == 0:
            return python
    return None


def draw_elsewhere(folder: Path, rows: list[dict]) -> list[str]:
    """Does the work of `draw` with any Python that can; raises a RuntimeError with the reason if none can."""
    python = interpreter()
    if python is None:
        raise RuntimeError("no Python here has matplotlib (Debian: python3-matplotlib)")
    done = subprocess.run([python, "-B", __file__, str(folder)], input=json.dumps(rows), capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip() or "it could not be drawn").splitlines()[-1])
    return done.stdout.split()


if __name__ == "__main__":
    print("\n".join(draw(Path(sys.argv[1]), json.load(sys.stdin))))
