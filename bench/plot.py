"""Draws the rows of a run, one SVG for each workload: bars for medians, whiskers from the smallest to the largest round.

Run as a program, with the folder as its argument and the rows of --json on its standard input, because the Python that
has matplotlib need not be the one that runs the bench.
"""

import functools
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import report

OURS, OTHERS = "#c2410c", "#64748b"
LINES = ("#0f766e", "#1d4ed8", "#7c3aed", "#64748b", "#a16207", "#0891b2", "#be185d")
LOG_FROM = 10  # ratio of the largest to the smallest from which a scale is logarithmic


def is_ours(impl: str) -> bool:
    return impl == "pirn" or impl.startswith("pirn-")


def plain(axis) -> None:
    """Numbers in full at the ticks."""
    axis.set_major_formatter(lambda value, _: f"{value:,.10g}")


def logarithmic(axis) -> None:
    """Ticks at 1, 2, 5, 10 and so on."""
    from matplotlib import ticker

    axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axis.set_minor_locator(ticker.NullLocator())
    plain(axis)


def spread(places: list[float], gap: float) -> list[float]:
    """The same places, in rising order, moved up where needed so that each is at least `gap` above the one below."""
    moved = []
    for place in places:
        moved.append(max(place, moved[-1] + gap) if moved else place)
    return moved


def bars(axes, title: str, rows: list[dict]) -> None:
    """The implementations of one table, best on top."""
    rate = rows[0]["unit"].endswith("/s")
    rows = sorted(rows, key=lambda row: row["median"], reverse=not rate)
    medians = [row["median"] for row in rows]
    whiskers = [[row["median"] - row["min"] for row in rows], [row["max"] - row["median"] for row in rows]]
    axes.barh([row["impl"] for row in rows], medians, xerr=whiskers, height=0.7, error_kw={"lw": 1, "capsize": 2.5},
              color=[OURS if is_ours(row["impl"]) else OTHERS for row in rows], ecolor="#111827")
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
    """The implementations over the parameter of a series, divided by the base's median at the same value."""
    found = report.series(rows, workload)
    reference = report.base(workload, found)
    whole = {value: row["median"] for value, row in found.get(reference, {}).items()}
    colours = iter(LINES * 4)
    ends = []
    for impl in sorted(found, key=lambda impl: (not is_ours(impl), impl)):
        points = [(value, row) for value, row in found[impl].items() if whole.get(value)]
        if not points:
            continue
        x = [value for value, _ in points]
        y = [row["median"] / whole[value] for value, row in points]
        whiskers = [[(row["median"] - row["min"]) / whole[value] for value, row in points],
                    [(row["max"] - row["median"]) / whole[value] for value, row in points]]
        colour = OURS if impl == "pirn" else next(colours)
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


def grid_lines(axes, title: str, rows: list[dict], grid) -> None:
    """The implementations over the parameter that a panel goes over, in absolute figures."""
    found = {}
    for row in rows:
        unusual = {name: row["params"][name] for name, value in grid.usual.items() if row["params"].get(name) != value}
        if not unusual or is_ours(row["impl"]):
            found.setdefault(" ".join(filter(None, (row["impl"], report.label(unusual)))), []).append(row)
    colours = iter(LINES * 8)
    ends = []
    for name in sorted(found, key=lambda name: (not is_ours(name), name)):
        points = sorted(found[name], key=lambda row: row["params"][grid.x])
        x = [row["params"][grid.x] for row in points]
        y = [row["median"] for row in points]
        whiskers = [[row["median"] - row["min"] for row in points], [row["max"] - row["median"] for row in points]]
        ours = is_ours(name)
        colour = OURS if name == report.base(rows[0]["workload"], found) else next(colours)
        axes.errorbar(x, y, yerr=whiskers, color=colour, lw=1.8 if ours else 1.1, ls="-" if ours else "--", elinewidth=0.8,
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
    """The rows of each panel, by its title: those that have more than one value to go over."""
    panels = {}
    for row in rows:
        params = row["params"]
        if params.get(grid.x, 0) > 0 and all(params.get(name) in values for name, values in grid.drawn.items()):
            panels.setdefault(report.label({name: params[name] for name in grid.panels}), []).append(row)
    return {title: members for title, members in panels.items() if len({row["params"][grid.x] for row in members}) > 1}


def figure(pyplot, workload: str, rows: list[dict]):
    """The picture of one workload: its lines when it is a series, a panel with bars for each table otherwise."""
    if workload in report.SERIES:
        made, axes = pyplot.subplots(figsize=(7.5, 4.2), layout="constrained")
        lines(axes, workload, rows)
        axes.margins(x=0.22)  # room for the names at the right
        axes.set_xlim(left=0)
        panels = [axes]
    elif workload in report.GRIDS:
        grid = report.GRIDS[workload]
        groups = grid_panels(rows, grid)
        made, axes = pyplot.subplots(max(1, len(groups)), squeeze=False, layout="constrained",
                                     figsize=(7.5, 4.4 * max(1, len(groups))))
        panels = axes[:, 0]
        for panel, (title, group) in zip(panels, groups.items()):
            grid_lines(panel, f"{workload} {title}".strip(), group, grid)
    else:
        groups = report.grouped(rows)
        heights = [0.55 + 0.24 * len(group) for group in groups.values()]
        made, axes = pyplot.subplots(len(groups), squeeze=False, layout="constrained",
                                     figsize=(7.5, sum(heights) + 0.3 * len(groups)), height_ratios=heights)
        panels = axes[:, 0]
        for panel, ((_, params, unit), group) in zip(panels, groups.items()):
            bars(panel, " ".join(filter(None, (workload, params, f"({unit})"))), group)
    for panel in panels:
        panel.tick_params(labelsize=8, length=2)
        panel.set_axisbelow(True)
        for side in ("top", "right"):
            panel.spines[side].set_visible(False)
    return made


def draw(folder: Path, rows: list[dict]) -> list[str]:
    """Writes <workload>.svg for each workload that has rows; their names."""
    import matplotlib

    matplotlib.use("svg")
    # The same rows make the same file: no date in it, no random names, and text that stays text.
    matplotlib.rcParams.update({"svg.hashsalt": "pirn", "svg.fonttype": "none", "font.family": "sans-serif",
                                "font.sans-serif": ["DejaVu Sans"]})
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    workloads = list(dict.fromkeys(row["workload"] for row in rows if row["workload"] != "clock"))
    for workload in workloads:
        made = figure(pyplot, workload, [row for row in rows if row["workload"] == workload])
        made.savefig(folder / f"{workload}.svg", metadata={"Date": None})
        pyplot.close(made)
    return workloads


@functools.cache
def interpreter() -> str | None:
    """A Python that has matplotlib, or None."""
    for python in dict.fromkeys((sys.executable, "/usr/bin/python3", os.environ.get("PIRN_PLOT_PYTHON", ""))):
        found = python and Path(python).exists() and subprocess.run(
            [python, "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('matplotlib') is None)"])
        if found and found.returncode == 0:
            return python
    return None


def draw_elsewhere(folder: Path, rows: list[dict]) -> list[str]:
    """What `draw` does, by whichever Python can; RuntimeError with the reason when none can."""
    python = interpreter()
    if python is None:
        raise RuntimeError("no Python here has matplotlib (Debian: python3-matplotlib)")
    done = subprocess.run([python, "-B", __file__, str(folder)], input=json.dumps(rows), capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip() or "it could not be drawn").splitlines()[-1])
    return done.stdout.split()


if __name__ == "__main__":
    print("\n".join(draw(Path(sys.argv[1]), json.load(sys.stdin))))
