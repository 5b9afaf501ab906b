"""The page of figures and the data that is kept for it between runs: bench/page.py and bench/records.py."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import page  # noqa: E402
import records  # noqa: E402
import report  # noqa: E402

HERE = {"processor": "this one", "memory": "24 GiB"}


ELSEWHERE = {"processor": "another one", "memory": "24 GiB"}


def results(workload, value, **others) -> report.Results:
    made = report.Results()
    for _ in range(3):
        made.add({"unit": "ns", "params": {}, "value": value, "note": f"{workload} by hand"}, workload, "pirn")
        for impl, its in others.items():
            made.add({"unit": "ns", "params": {}, "value": its}, workload, impl)
    return made


def text(*of) -> str:
    return "\n".join(page.pages(records.Records(list(of))).values())


class PageTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "performance.json"

    def test_names_the_machine_when_and_what_was_not_measured(self):
        record = records.Record(records.machine())
        record.take("switch", results("switch", 2.0), skipped=["switch/pth: its library is not installed"])
        made = text(record)
        for expected in ("processor: ", "kernel ", "| pirn | 2.00 |", "pirn: switch by hand", "its library is not installed",
                         "3 rounds, 2"):
            self.assertIn(expected, made)

    def test_keeps_what_is_not_measured_anew(self):
        kept = records.Records.read(self.path)
        first = kept.of(HERE)
        first.take("switch", results("switch", 2.0), skipped=["switch/go: absent", "sum/go: absent too"])
        first.take("sum", results("sum", 3.0), skipped=["switch/go: absent", "sum/go: absent too"])
        kept.write(self.path)
        second = records.Records.read(self.path).of(HERE)
        second.take("sum", results("sum", 4.0))
        made = text(second)
        for expected in ("| pirn | 2.00 |", "switch by hand", "switch/go: absent", "| pirn | 4.00 |"):
            self.assertIn(expected, made)
        for gone in ("| pirn | 3.00 |", "sum/go"):
            self.assertNotIn(gone, made)

    def test_keeps_programs_from_outside_with_the_run_of_pirn_that_they_were_beside(self):
        kept = records.Records.read(self.path)
        kept.of(HERE).take("sum", results("sum", 3.0, foreign=6.0, go=9.0), outside={"foreign": "r17"})
        kept.write(self.path)
        kept = records.Records.read(self.path)
        kept.of(HERE).take("sum", results("sum", 4.0, go=8.0))
        made = text(kept.of(HERE))
        for expected in ("### foreign\n\nRevision r17, ", "| foreign | 6.00 | 6.00 | 6.00 | 2.00 |", "| pirn | 3.00 |",
                         "| go | 8.00 | 8.00 | 8.00 | 2.00 |"):
            self.assertIn(expected, made)
        self.assertNotIn("| go | 9.00 |", made)
        self.assertEqual([row["impl"] for row in kept.of(HERE).runs["sum"]["rows"]], ["pirn", "go"])
        kept.of(HERE).take("sum", results("sum", 4.0, foreign=2.0), outside={"foreign": "r18"})
        self.assertIn("Revision r18", text(kept.of(HERE)))
        self.assertNotIn("r17", text(kept.of(HERE)))

    def test_the_summary_has_the_tables_that_people_decide_by_with_ratios(self):
        record = records.Record(HERE)
        made = report.Results()
        for impl, workers, value in (("pirn", 1, 2.0), ("go", 1, 10.0), ("pirn", 2, 10.0), ("go", 2, 9.0), ("st", 1, 5.0)):
            made.add({"unit": "ns", "params": {"workers": workers}, "value": value}, "mutex", impl)
        record.take("mutex", made)
        made = page.summary(records.Records([record]))
        self.assertIn("| implementation | mutex, 1 | mutex, 2 |", made)
        self.assertIn("| **pirn** | 2.00 (1.00) | 10.00 (1.00) |", made)
        self.assertIn("| go | 10.00 (5.00) | 9.00 (0.90) |", made, "also where a rival wins")
        self.assertIn("| st | 5.00 (2.50) |  |", made)
        self.assertNotIn("Web server", made, "nothing of it was measured")

    def test_where_pirn_has_two_engines_ratios_are_to_the_default_one(self):
        record = records.Record(HERE)
        made = report.Results()
        for impl, connections, value in (("pirn-epoll", 8, 100.0), ("pirn-uring", 8, 120.0), ("go", 8, 50.0), ("go", 1000, 40.0)):
            made.add({"unit": "requests/s", "value": value,
                      "params": {"connections": connections, "bytes": 64, "measure": "per-cpu"}}, "echo", impl)
        record.take("echo", made)
        made = page.summary(records.Records([record]))
        self.assertIn("| pirn-uring | 120 (1.20) |  |", made)
        self.assertIn("| go | 50.00 (0.50) | 40.00 |", made)

    def test_a_column_is_the_setting_with_fewest_other_parameters(self):
        record = records.Record(HERE)
        made = report.Results()
        made.add({"unit": "ns", "params": {"fibers": 10, "workers": 2}, "value": 9.0}, "yield", "pirn")
        made.add({"unit": "ns", "params": {"fibers": 10}, "value": 1.0}, "yield", "pirn")
        record.take("yield", made)
        self.assertEqual(page.column(record, "yield", {}, "ns"), {"pirn": 1.0})
        self.assertEqual(page.column(record, "yield", {"workers": 2}, "ns"), {"pirn": 9.0})

    def test_the_readme_takes_its_table_and_keeps_the_rest(self):
        record = records.Record(HERE)
        record.take("yield", results("yield", 1.234))
        old = f"before\n{page.README_MARKS[0]}| stale |\n{page.README_MARKS[1]}after\n"
        made = page.with_table(old, records.Records([record]))
        self.assertTrue(made.startswith("before\n") and made.endswith("after\n"))
        self.assertIn("| **pirn** | **1.2** | | |", made)
        self.assertNotIn("Others", made, "there are none")
        self.assertNotIn("stale", made)
        self.assertEqual(page.with_table(made, records.Records([record])), made)
        with self.assertRaisesRegex(ValueError, "figures of docs"):
            page.with_table("no marks\n", records.Records([record]))

    def test_the_readme_shows_what_others_win(self):
        record = records.Record(HERE)
        record.take("yield", results("yield", 3.0, tokio=2.5, go=2.0, loop=0.5, **{"pirn-co": 1.5}))
        made = page.losses(records.Records([record]))
        self.assertEqual(made, "", "a form of pirn, or no library, is the best")
        record.take("yield", results("yield", 3.0, tokio=2.5, go=2.0, **{"pirn-limit": 0.5}))
        made = page.losses(records.Records([record]))
        self.assertIn("| Switching and starting: yield | go 2.00 | pirn 3.00 | ns |", made)

    def test_does_not_mix_machines(self):
        kept = records.Records.read(self.path)
        kept.of(HERE).take("mutex", self.mutexes(pirn=2.0, go=10.0))
        kept.of(HERE).take("sum", results("sum", 3.0))
        kept.write(self.path)
        kept = records.Records.read(self.path)
        kept.of(ELSEWHERE).take("mutex", self.mutexes(pirn=4.0, st=6.0))
        made = page.summary(kept)
        for expected in ("machine 1: processor this one; memory 24 GiB", "machine 2: processor another one"):
            self.assertIn(expected, made)
        shown = made[made.index("## Messages"):]
        self.assertTrue(("| go |" in shown) != ("| st |" in shown), "a table is of one machine")
        pages = page.pages(kept)
        self.assertIn("Measured on machine 1", pages["sum.md"])
        self.assertNotIn("machine 2", pages["sum.md"])
        for expected in ("| go | 10.00 | 10.00 | 10.00 | 5.00 |", "| st | 6.00 | 6.00 | 6.00 | 1.50 |", "## On machine "):
            self.assertIn(expected, pages["mutex.md"])

    def test_a_table_is_of_the_machine_with_most_of_it_then_of_the_newest(self):
        kept = records.Records()
        for here, workloads, day in ((HERE, ("yield", "spawn"), "2026-01-01"), (ELSEWHERE, ("yield",), "2026-02-02")):
            for workload in workloads:
                kept.of(here).take(workload, results(workload, 1.0))
                kept.of(here).runs[workload]["date"] = day
        self.assertEqual(kept.best(["yield", "spawn"]).machine, HERE)
        self.assertEqual(kept.best(["yield"]).machine, ELSEWHERE)
        self.assertEqual([record.machine for record in kept.with_run("yield")], [ELSEWHERE, HERE])

    def test_a_run_replaces_that_by_another_compiler_on_the_same_processor(self):
        kept = records.Records()
        kept.of(HERE).take("sum", results("sum", 3.0))
        kept.of(ELSEWHERE).take("sum", results("sum", 3.0))
        newer = kept.of(HERE | {"C++": "a newer one"})
        newer.take("sum", results("sum", 2.0))
        kept.replace(newer, ["sum"])
        self.assertEqual([record.machine for record in kept.records], [ELSEWHERE, newer.machine])

    @staticmethod
    def mutexes(**values) -> report.Results:
        made = report.Results()
        for impl, value in values.items():
            made.add({"unit": "ns", "params": {"workers": 1}, "value": value}, "mutex", impl)
        return made

    def test_has_a_section_for_a_workload_with_tables_of_its_own(self):
        record = records.Record(HERE)
        made = report.Results()
        for impl in ("classic", "pirn-plugin"):
            made.add({"unit": "ns", "params": {"protocol": "http", "bytes": 100}, "value": 2.0}, "client", impl)
        record.take("client", made)
        self.assertEqual(text(record).count("client: requests per second more than classic"), 1)

    def test_tells_a_workload_from_one_whose_name_begins_with_its_name(self):
        record = records.Record(HERE)
        lines = ["spread/pirn: a", "spread-counts/pirn: b", "counts: of all"]
        record.take("spread", results("spread", 2.0), skipped=lines)
        self.assertEqual(record.runs["spread"]["skipped"], ["spread/pirn: a", "counts: of all"])


if __name__ == "__main__":
    unittest.main()
