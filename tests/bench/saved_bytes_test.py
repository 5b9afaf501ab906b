"""What is kept where a fiber suspends: bench/saved_bytes.py, on traces written by hand."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import saved_bytes  # noqa: E402

CONTEXT, LOW, HIGH, MARK, SWITCH = 0x100, 0x1000, 0x2000, 0x50, 0x4000


def leaves(context=CONTEXT, at=SWITCH):
    """A switch away from a context."""
    return [("S", context, 8, at), ("S", context + 8, 8, at), ("S", context + 16, 8, at)]


def returns(context=CONTEXT):
    return [("L", context, 8, 0)]


class SavedBytesTest(unittest.TestCase):
    def test_what_the_fiber_reads_before_it_is_written_is_kept(self):
        trace = [*returns(), ("S", LOW, 8, 1), ("S", LOW + 8, 8, 2), *leaves(), *returns(), ("L", LOW, 8, 3), ("S", LOW + 8, 8, 4),
                 ("L", LOW + 8, 8, 5)]
        self.assertEqual(saved_bytes.kept(trace, [(LOW, HIGH, CONTEXT)]), {SWITCH: (8, 0)})

    def test_what_only_others_read_is_counted_apart(self):
        trace = [*returns(), *leaves(), ("L", LOW + 64, 4, 1), *returns(), ("L", LOW, 8, 2)]
        self.assertEqual(saved_bytes.kept(trace, [(LOW, HIGH, CONTEXT)]), {SWITCH: (8, 4)})

    def test_a_switch_belongs_to_the_point_that_has_begun(self):
        trace = [*returns(), ("S", MARK, 1, 1), *leaves(), *returns(), ("L", LOW, 8, 2), ("S", MARK + 1, 1, 3), *leaves(), *returns(),
                 ("L", LOW, 4, 4)]
        points = {MARK: "first", MARK + 1: "second"}
        self.assertEqual(saved_bytes.kept(trace, [(LOW, HIGH, CONTEXT)], points), {"first": (8, 0), "second": (4, 0)})

    def test_memory_that_is_told_of_is_counted_at_the_moment(self):
        trace = [("S", LOW, 16, 1), ("S", MARK, 1, 2), ("L", LOW + 4, 4, 3), ("S", LOW, 16, 4), ("L", LOW, 16, 5), ("L", HIGH, 8, 6)]
        self.assertEqual(saved_bytes.live(trace, {MARK: ("here", [(LOW, HIGH)])}), {"here": 4})
        self.assertEqual(saved_bytes.live(trace, {MARK: ("here", [(LOW, HIGH), (HIGH, HIGH + 8)])}), {"here": 12})

    def test_a_change_in_place_reads_first(self):
        trace = [("S", MARK, 1, 1), ("M", LOW, 8, 2)]
        self.assertEqual(saved_bytes.live(trace, {MARK: ("here", [(LOW, HIGH)])}), {"here": 8})

    def test_programs_tell_of_fibers_points_and_moments(self):
        told = "fiber 0x1 0x2 0x3\npoint 0x5 channel, send\nsuspended 0x6 0x10 0x20 0x30 0x40 a resume\n"
        self.assertEqual(saved_bytes.told_fibers(told), [(1, 2, 3)])
        self.assertEqual(saved_bytes.told_points(told), {5: "channel, send"})
        self.assertEqual(saved_bytes.told_moments(told), {6: ("a resume", [(0x10, 0x20), (0x30, 0x40)])})


if __name__ == "__main__":
    unittest.main()
