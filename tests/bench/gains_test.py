"""The gains of the workload client, next to the paper's figures."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import gains  # noqa: E402
import report  # noqa: E402


def rows(key, **values) -> list[dict]:
    return [{"workload": "client", "impl": impl, "params": {"protocol": "rpc", "bytes": 100}, key: value}
            for impl, value in values.items()]


class GainsTest(unittest.TestCase):
    def test_a_gain_is_in_requests_per_second(self):
        ((title, heading, lines),) = gains.tables(rows("median", **{"classic": 150, "pirn-attribute": 160, "pirn-plugin": 100}))
        self.assertIn("classic", title)
        self.assertEqual(heading, ["answers", "pirn-attribute", "the paper's, 1 MB", "pirn-plugin", "the paper's, 1 MB"])
        self.assertEqual(lines, [["rpc, 100 bytes", "-6.2 %", "+26.2 %", "+50.0 %", "+45.2 %"]])

    def test_counts_are_of_instructions_and_fewer_are_below_zero(self):
        ((_, heading, lines),) = gains.count_tables(rows("instructions", **{"classic": 200, "pirn-attribute": 201, "pirn-plugin": 190}))
        self.assertEqual(heading, ["answers", "pirn-attribute", "pirn-plugin"])
        self.assertEqual(lines, [["rpc, 100 bytes", "+0.50 %", "-5.00 %"]])

    def test_what_was_not_measured_is_left_open(self):
        ((_, _, lines),) = gains.tables(rows("median", **{"classic": 150, "pirn-attribute": 100}))
        self.assertEqual(lines[0][1:4], ["+50.0 %", "+26.2 %", "-"])
        self.assertEqual(gains.tables(rows("median", **{"pirn-plugin": 100})), [])
        self.assertEqual(gains.count_tables([{"workload": "sum"}]), [])

    def test_what_gcc_compiled_is_compared_with_the_classic_switch_of_gcc(self):
        ((_, _, lines),) = gains.tables(rows("median", **{"classic": 100, "classic-gcc": 220, "pirn-attribute-gcc": 200}))
        self.assertEqual(lines[1], ["rpc, 100 bytes, gcc", "+10.0 %", "+26.2 %", "-", "+45.2 %"])

    def test_a_report_begins_with_them(self):
        results = report.Results()
        for impl, value in {"classic": 150.0, "pirn-plugin": 100.0}.items():
            for size in (100, 1 << 20):
                results.add({"params": {"protocol": "rpc", "bytes": size}, "unit": "ns", "value": value}, "client", impl)
        titles = [title for title, _, _ in report.tables(results, ["client"])]
        self.assertEqual([title.split(":")[0] == "client" for title in titles], [True, False, False])
        self.assertIn("+50.0 %", report.text(results, ["client"]))


if __name__ == "__main__":
    unittest.main()
