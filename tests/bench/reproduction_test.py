"""What the sources say, held against the figures that are kept: bench/sources.py and bench/reproduction.py."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import records  # noqa: E402
import report  # noqa: E402
import reproduction  # noqa: E402
import rivals  # noqa: E402
from sources import CLAIMS, OURS, Claim, Figure  # noqa: E402

A, B = Figure("yield", "pirn", {"fibers": 10}), Figure("yield", "st", {"fibers": 10})


def record(unit="ns", **values) -> records.Record:
    made, results = records.Record({"processor": "this one"}), report.Results()
    for impl, value in values.items():
        results.add({"unit": unit, "params": {"fibers": 10}, "value": value}, "yield", impl)
        results.add({"unit": unit, "params": {"fibers": 10, "workers": 2}, "value": 77.0}, "yield", impl)
    made.take("yield", results, counts=[{"workload": "yield", "impl": "pirn", "params": {"fibers": 10}, "instructions": 12.0}])
    return made


class ReproductionTest(unittest.TestCase):
    def verdict(self, claim: Claim, **values) -> str:
        return reproduction.verdict(record(**values), claim)

    def test_says_whether_the_order_holds(self):
        claim = Claim("swapstack", "table I", "less", A, B)
        self.assertEqual(self.verdict(claim, pirn=2.0, st=8.0), "same sign: 2.00 and 8.00 ns (4.00)")
        self.assertEqual(self.verdict(claim, pirn=8.0, st=2.0), "inverted: 8.00 and 2.00 ns (0.25)")
        self.assertEqual(self.verdict(claim, pirn=8.0), "not measured yet")

    def test_a_higher_rate_is_better(self):
        rates = [Figure(each.workload, each.impl, each.params, "op/s") for each in (A, B)]
        claim = Claim("usched", "N = 8", "more", *rates)
        self.assertEqual(self.verdict(claim, unit="op/s", pirn=8e6, st=2e6), "same sign: 8.00 and 2.00 M op/s (4.00)")
        self.assertEqual(self.verdict(claim, unit="op/s", pirn=2e6, st=8e6), "inverted: 2.00 and 8.00 M op/s (0.25)")

    def test_what_is_alike_may_be_ahead_by_little(self):
        claim = Claim("stackful", "figure 12", "alike", A, B, "", True)
        self.assertIn("same sign", self.verdict(claim, pirn=2.2, st=2.0))
        for pirn, st in ((2.4, 2.0), (2.0, 2.4)):
            self.assertIn("inverted", self.verdict(claim, pirn=pirn, st=st))

    def test_a_count_is_not_taken_for_a_time_and_a_bound_may_be_a_number(self):
        claim = Claim("stackful", "figure 11", "few", Figure("yield", "pirn", {"fibers": 10}, "instructions"), 24)
        self.assertEqual(self.verdict(claim, pirn=2.0), "same sign: 12.00 and 24.00 instructions (2.00)")

    def test_programs_from_outside_count(self):
        made = record(pirn=2.0)
        made.runs["yield"]["outside"] = {"st": {"rows": record(st=8.0).runs["yield"]["rows"]}}
        self.assertEqual(reproduction.of_figure(made, B), 8.0)

    def test_a_workload_is_of_a_source_or_has_a_reason(self):
        named = {figure.workload for claim in CLAIMS for figure in (claim.better, claim.worse) if isinstance(figure, Figure)}
        for workload in rivals.WORKLOADS:
            self.assertEqual((workload in named) + (workload in OURS), 1, workload)
            self.assertGreater(len(reproduction.sentences(record(pirn=2.0), workload)), 20)
        self.assertLessEqual(named | set(OURS), set(rivals.WORKLOADS))

    def test_the_page_has_every_claim_and_every_machine(self):
        kept = records.Records([record(pirn=2.0), record(pirn=3.0)])
        kept.records[1].machine = {"processor": "another"}
        made = reproduction.page(kept, "- two machines")
        self.assertEqual(made.count("\n| ") - made.count("\n| ---") - made.count("\n| where"), len(CLAIMS))
        self.assertIn("| machine 1 | machine 2 |", made)

    def test_what_differs_from_the_source_has_a_reason(self):
        for kept in records.Records.read().records:
            for claim in CLAIMS:
                if claim.better and reproduction.verdict(kept, claim).startswith("inverted"):
                    self.assertTrue(claim.why, f"{claim.place}: {claim.says}")


if __name__ == "__main__":
    unittest.main()
