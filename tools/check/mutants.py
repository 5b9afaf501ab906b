"""Each known fault of tests/faults still applies: what it replaces occurs exactly once in the file that it names."""

import sys
from pathlib import Path

from tree import Tree

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "faults"))
from faults import read_all  # noqa: E402  (behind the path to it)


def mutants(tree: Tree) -> list[str]:
    faults, findings = read_all(tree.root / "tests/faults")
    for fault in faults:
        try:
            fault.apply(tree.root)
        except ValueError as error:
            findings.append(str(error))
    return [f"tests/faults/{finding}" for finding in findings]
