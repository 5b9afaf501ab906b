"""What became of the sources' figures (sources.py): docs/reproduction.md, and a sentence on the page of each workload."""

from records import Record, Records
from report import number
from sources import CLAIMS, COUNTED, OURS, SOURCES, Claim, Figure

HEAD = """# Reproduction

pirn grew from five documents. Each of their figures and tables that shows a measurement stands here beside what the bench
measures of it (the others show code, algorithms or layouts): `better` and `worse` are the two rows that the source compares, and the number in brackets is how many times better the first one is.
`same sign` says that the source's order holds on that machine (or, where the source has both alike, that neither is 15 % ahead),
`inverted` that it does not. The page is made of
docs/performance.json by `./dev bench --docs`; do not edit it. `./dev bench NAME` measures a workload, `--counts` what is
counted, and `--rivals` is needed for libaco, usched and cppcoro.

{machines}
"""


# Two figures are alike for a source within this factor.
EVEN = 1.15


def of_figure(record: Record, figure: Figure) -> float | None:
    """Returns the median or the count that a machine has of a figure, with rows of programs from outside."""
    run = record.runs.get(figure.workload)
    if run is None:
        return None
    if figure.unit in COUNTED:
        rows = [(row, row[figure.unit]) for row in run["counts"]]
    else:
        outside = [row for kept in run.get("outside", {}).values() for row in kept["rows"]]
        rows = [(row, row["median"]) for row in [*run["rows"], *outside] if row["unit"] == figure.unit]
    found = [(len(row["params"]), value) for row, value in rows
             if row["impl"] == figure.impl and figure.params.items() <= row["params"].items()]
    return min(found, key=lambda each: each[0])[1] if found else None


def gain(record: Record, claim: Claim) -> tuple[float, float, float] | None:
    """Returns both figures, and how many times better the first is."""
    better = of_figure(record, claim.better)
    worse = of_figure(record, claim.worse) if isinstance(claim.worse, Figure) else claim.worse
    if better is None or worse is None:
        return None
    over, under = (better, worse) if claim.better.unit.endswith("/s") else (worse, better)
    return better, worse, over / under if under else float("inf")


def names(claim: Claim) -> str:
    worse = f"{claim.worse.workload} {claim.worse.impl}" if isinstance(claim.worse, Figure) else f"{claim.worse} {claim.better.unit}"
    return f"{claim.better.workload} {claim.better.impl}; {worse}"


def in_units(better: float, worse: float, unit: str) -> str:
    if unit.endswith("/s"):
        return f"{number(better / 1e6)} and {number(worse / 1e6)} M{unit if unit == '/s' else ' ' + unit}"
    return f"{number(better)} and {number(worse)} {unit.replace('d1_misses', 'misses')}"


def verdict(record: Record, claim: Claim) -> str:
    """Returns the cell of a machine."""
    found = gain(record, claim)
    if found is None:
        return "not measured yet"
    better, worse, times = found
    same = 1 / EVEN < times < EVEN if claim.even else times > 1
    return f"{'same sign' if same else 'inverted'}: {in_units(better, worse, claim.better.unit)} ({number(times)})"


def page(records: Records, machines: str) -> str:
    """Returns docs/reproduction.md; `machines` are the lines that name them."""
    parts = [HEAD.format(machines=machines)]
    machine_names = [records.name(record) for record in records.records]
    for source, title in SOURCES.items():
        parts.append(f"## {title}\n")
        parts.append(f"| where | the source | better; worse | {' | '.join(machine_names)} |\n" + "| --- " * (3 + len(machine_names)) + "|")
        for claim in (each for each in CLAIMS if each.source == source):
            why = f" {claim.why}" if claim.why and claim.better else ""
            if claim.better is None:
                cells = ["", *[f"not measurable here: {claim.why}"] * len(machine_names)]
            else:
                cells = [names(claim), *(verdict(record, claim) for record in records.records)]
            parts.append(f"| {claim.place} | {claim.says}.{why} | {' | '.join(cells)} |")
        parts.append("")
    return "\n".join(parts)


def sentences(record: Record, workload: str) -> str:
    """Returns what the sources say of a workload and what the machine of a record does: a line for each claim, or why there
    is the workload if none of them has it."""
    lines = []
    for claim in CLAIMS:
        if workload in (figure.workload for figure in (claim.better, claim.worse) if isinstance(figure, Figure)):
            why = f" {claim.why}" if claim.why else ""
            lines.append(f"- {SOURCES[claim.source]}, {claim.place}: {claim.says}. Here ({names(claim)}): "
                         f"{verdict(record, claim)}.{why}")
    return "\n".join(lines or [f"None of the sources has this workload: {OURS[workload]}."]) + "\n"
