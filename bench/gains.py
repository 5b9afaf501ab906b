"""The gains of the workload `client` over classic switches, next to a paper's figures for its own clients.

What gcc compiled is compared with the classic switch as gcc compiles it."""

import itertools

BASE = "classic"
# In percent of the requests per second, for answers of 1 MB: Li and others, "Stackful Coroutine Made Fast", figure 16.
# Only the library has the convention that preserves no register, or the compiler gives it to the client too.
PAPER = {("http", "pirn-attribute"): 11.2, ("http", "pirn-plugin"): 18.8,
         ("rpc", "pirn-attribute"): 26.2, ("rpc", "pirn-plugin"): 45.2}
IMPLS = ("pirn-attribute", "pirn-plugin")


def _by_setting(rows: list[dict]) -> dict[tuple[str, int], dict[str, dict]]:
    found = {}
    for row in rows:
        if row["workload"] == "client":
            found.setdefault((row["params"]["protocol"], row["params"]["bytes"]), {})[row["impl"]] = row
    return found


def _table(title: str, rows: list[dict], gain, decimals: int) -> list[tuple[str, list[str], list[list[str]]]]:
    lines = []
    for ((protocol, size), impls), compiler in itertools.product(_by_setting(rows).items(), ("", "-gcc")):
        base = impls.get(BASE + compiler)
        if not base:
            continue
        line = [f"{protocol}, {size} bytes{compiler.replace('-', ', ')}"]
        for impl in IMPLS:
            line += [f"{gain(base, impls[impl + compiler]):+.{decimals}f} %" if impl + compiler in impls else "-",
                     f"{PAPER[protocol, impl]:+} %"]
        lines.append(line)
    heading = ["answers"] + [cell for impl in IMPLS for cell in (impl, "the paper's, 1 MB")]
    return [(title, heading, lines)] if lines else []


def tables(rows: list[dict]) -> list[tuple[str, list[str], list[list[str]]]]:
    """Returns how many more requests per second there are, by the medians."""
    return _table(f"client: requests per second more than {BASE}", rows,
                  lambda base, row: 100 * (base["median"] / row["median"] - 1), 1)


def count_tables(counts: list[dict]) -> list[tuple[str, list[str], list[list[str]]]]:
    """Returns how many more instructions there are; below 0 is fewer."""
    made = _table(f"client: instructions more than {BASE}", counts,
                  lambda base, row: 100 * (row["instructions"] / base["instructions"] - 1), 2)
    # The paper has no counts.
    return [(title, [heading[0], *IMPLS], [[line[0], *line[1::2]] for line in lines]) for title, heading, lines in made]
