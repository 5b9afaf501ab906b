"""docs/performance.md, docs/reproduction.md and the tables of README.md show what docs/performance.json keeps."""

import sys
from pathlib import Path

from tree import Tree

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import page  # noqa: E402  (behind the path to it)


def figures(tree: Tree) -> list[str]:
    if not (tree.root / "docs/performance.json").exists():
        return []
    records = page.Records.read(tree.root / "docs/performance.json")
    findings = []
    try:
        if page.with_table(tree.text("README.md"), records) != tree.text("README.md"):
            findings.append("README.md: its table of figures is not that of docs/performance.json; ./dev format pastes it")
    except ValueError as error:
        findings.append(str(error))
    if tree.text("docs/performance.md") != page.summary(records):
        findings.append("docs/performance.md: is not made of docs/performance.json; ./dev format makes it anew")
    if tree.text("docs/reproduction.md") != page.reproduction.page(records, page.machine_list(records)):
        findings.append("docs/reproduction.md: is not made of docs/performance.json and bench/sources.py; ./dev format makes it anew")
    return findings
