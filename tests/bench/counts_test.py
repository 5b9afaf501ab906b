"""Counting by cachegrind: the results from its totals, the programs and the ways to run them, and the places of the
counts."""

import argparse
import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import counts  # noqa: E402
import page  # noqa: E402
import records  # noqa: E402
import report  # noqa: E402
import rivals  # noqa: E402
import run  # noqa: E402

# Stands for valgrind: its totals are 1000 plus 40 for each operation, and show the requested loop.
TOOL = """#!/bin/sh
for argument; do case $argument in --cachegrind-out-file=*) out=${argument#*=} ;; esac; done
[ -z "$FAIL" ] || { echo 'vex amd64->IR: unhandled instruction' >&2; exit 1; }
ir=$((1000 + 40 * PIRN_BENCH_COUNT))
cat >$out <<EOF
desc: D1 cache: 32768 B, 64 B, 8-way associative
events: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw Bc Bcm Bi Bim
fl=x
summary: $ir 0 0 0 $((PIRN_BENCH_COUNT / 2)) 0 0 $((PIRN_BENCH_COUNT / 4)) $((PIRN_BENCH_COUNT / 4)) $((2 * PIRN_BENCH_COUNT)) 7 \
$((PIRN_BENCH_COUNT_LOOP * PIRN_BENCH_COUNT)) 3
EOF
"""


# Stands for perf: 1000 cycles, and 3 for each operation; with BLIND it is one of a machine without counters.
PERF = """#!/bin/sh
count=${PIRN_BENCH_COUNT:-0}
for event in instructions:u branches:u branch-misses:u L1-dcache-load-misses:u; do echo "$((7 * count)),,$event,1,100.00,," >&2; done
cycles=$((1000 + 3 * count))
[ -z "$BLIND" ] || cycles='<not supported>'
echo "$cycles,,cycles:u,1,100.00,," >&2
"""


class CountsTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        tool = self.folder / "valgrind"
        tool.write_text(TOOL)
        tool.chmod(0o755)
        perf = self.folder / "perf"
        perf.write_text(PERF)
        perf.chmod(0o755)
        for name in ("sum/pirn.cpp", "sum/pirn-frame.cpp", "sum/corosensei.rs", "sum/go.go", "sum/loop.cpp"):
            source = self.folder / name
            source.parent.mkdir(exist_ok=True)
            source.touch()
        for patch in (mock.patch.dict(os.environ, {"PATH": f"{self.folder}:{os.environ['PATH']}"}),
                      mock.patch.object(rivals, "HERE", self.folder)):
            patch.start()
            self.addCleanup(patch.stop)

    def test_the_start_of_a_program_cancels_out(self):
        case = counts.Case("sum", {"form": "while"}, "element", (10, 110), loop=1)
        row = counts.count(rivals.Program("sum", "pirn", ["program"]), case, dict(os.environ))
        self.assertEqual(tuple(row), counts.KEYS)
        self.assertEqual((row["instructions"], row["branches"], row["mispredicted"]), (40, 3, 0))
        self.assertAlmostEqual(row["d1_misses"], 0.75, delta=0.02)
        self.assertAlmostEqual(row["ll_misses"], 0.25, delta=0.02)

    def test_the_counters_of_the_processor_make_a_second_row_where_there_are_any(self):
        program = rivals.Program("sum", "pirn", ["program"])
        rows = [row for row in self.bench([program]).counted if row["params"] == {"form": "for"}]
        self.assertEqual([row["per"] for row in rows], ["element", "element by the processor's counters"])
        self.assertEqual((rows[1]["instructions"], rows[1]["cycles"]), (7, 3))
        made = report.count_tables(rows)
        self.assertNotIn("cycles", made[0][1])
        self.assertEqual(made[1][1][-1], "cycles")
        with mock.patch.dict(os.environ, {"BLIND": "1"}):
            bench = self.bench([program])
        self.assertEqual({row["per"] for row in bench.counted}, {"element"})
        self.assertIn("counters of the processor: perf does not count cycles:u on this machine", bench.skipped)
        self.assertFalse(bench.failed)

    def test_a_program_that_fails_shows_no_counts_and_fails_the_run_when_it_is_ours(self):
        for impl, failed in {"corosensei": False, "pirn": True, "pirn-frame": True}.items():
            with self.subTest(impl), mock.patch.dict(os.environ, {"FAIL": "1"}):
                bench = self.bench([rivals.Program("sum", impl, ["program"])])
                self.assertEqual(bench.counted, [])
                self.assertEqual(bench.failed, failed)
                self.assertIn("unhandled instruction", bench.skipped[0])

    def test_only_what_was_built_and_is_not_in_go_is_counted(self):
        programs = [rivals.Program("sum", "pirn", ["program"]), rivals.Program("sum", "corosensei", ["program"]),
                    rivals.Program("sum", "loop", ["program"], skipped="does not build"),
                    rivals.Program("sum", "go", ["program"]), rivals.Program("sum", "stranger", ["program"])]
        self.assertEqual({row["impl"] for row in self.bench(programs).counted}, {"pirn", "corosensei"})

    def test_counts_go_beside_the_rows(self):
        self.assertEqual(counts.beside(Path("a/rows.json")), Path("a/rows.counts.json"))
        self.assertEqual(counts.beside(Path("rows")), Path("rows.counts.json"))
        path = self.folder / "x.counts.json"
        counts.write([{"workload": "sum"}], path)
        self.assertEqual(json.loads(path.read_text()), [{"workload": "sum"}])

    def test_every_case_is_of_a_workload_and_its_second_run_is_the_longer_one(self):
        for case in counts.CASES:
            self.assertIn(case.workload, rivals.WORKLOADS)
            self.assertLess(*case.operations)

    def test_tables_have_a_line_for_each_implementation_fewest_instructions_first(self):
        row = {"workload": "hanoi", "params": {"disks": 14}, "per": "move", "branches": 3, "mispredicted": 0.25,
               "d1_misses": 0, "ll_misses": 0}
        made = [row | {"impl": "cpp20", "instructions": 400}, row | {"impl": "pirn", "instructions": 40}]
        ((title, heading, lines),) = report.count_tables(made)
        self.assertEqual(title, "hanoi disks=14 (count per move)")
        self.assertEqual(heading[1:3], ["instructions", "branches"])
        self.assertEqual(lines, [["pirn", "40.00", "3.00", "0.25", "0.00", "0.00"],
                                 ["cpp20", "400.00", "3.00", "0.25", "0.00", "0.00"]])
        older = [{key: value for key, value in made[0].items() if key != "ll_misses"}]
        self.assertEqual(report.count_tables(older)[0][2], [["cpp20", "400.00", "3.00", "0.25", "0.00"]])
        record = records.Record({})
        record.take("hanoi", report.Results(), made)
        text = page.workload_page(records.Records([record]), "hanoi")
        self.assertIn("## Counts", text)
        self.assertIn("| pirn | 40.00 |", text)

    def test_without_the_tool_it_says_so(self):
        with mock.patch.object(counts.shutil, "which", return_value=None):
            bench = self.bench([rivals.Program("sum", "pirn", ["program"])])
        self.assertEqual(bench.skipped, ["counts: valgrind is not installed"])
        self.assertFalse(bench.failed)

    def bench(self, programs):
        options = argparse.Namespace(names=["sum", "spawn"], rounds=0, quick=True)
        with contextlib.redirect_stderr(io.StringIO()):
            bench = run.Bench(options, programs)
            bench.count()
        return bench


if __name__ == "__main__":
    unittest.main()
