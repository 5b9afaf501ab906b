"""./dev check: what a reviewer should not have to look for. Ends with 'N passed, N failed'."""

import argparse
import sys
import time
from pathlib import Path

import compilers
import figures
import mutants
import prose
import public
import rules
import selftest
import tables
import visible
import waits
from tree import Tree

CHECKS = [
    ("layering", rules.layering),
    ("platform seam", rules.seam),
    ("fences name their pairs", rules.fences),
    ("shape of headers", rules.shape),
    ("unwind tables in an asm", rules.unwind_tables),
    ("editors see definitions", visible.visible),
    ("one suspend, one wake", waits.waits),
    ("length, paths, leftovers", rules.text_of_all),
    ("classes of sync are short", rules.short_classes),
    ("prose", prose.prose),
    ("public types", public.public),
    ("faults apply", mutants.mutants),
    ("formatting", rules.formatting),
    ("headers compile alone", compilers.headers),
    ("headers pull in little", compilers.weight),
    ("code blocks of the docs", compilers.docs),
    ("tables of the docs", tables.tables),
    ("figures of the docs", figures.figures),
    ("clang-tidy", compilers.tidy),
]


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev check")
    parser.add_argument("--all", action="store_true", help="clang-tidy on everything, not only on what changed")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()

    tree = Tree(Path(__file__).resolve().parents[2], options.jobs, options.all)
    failed = 0
    for name, check in [("the checks themselves", lambda _: selftest.run(options.jobs)), *CHECKS]:
        begin = time.monotonic()
        findings = check(tree)
        failed += bool(findings)
        print(f"{'FAILED' if findings else 'ok':7}{name:28}{time.monotonic() - begin:6.1f} s", flush=True)
        for finding in findings:
            print(f"  {finding}", flush=True)
    print(f"{len(CHECKS) + 1 - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
