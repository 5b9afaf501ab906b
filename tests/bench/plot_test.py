"""The pictures of a run, and the tables of a workload with a parameter."""

import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import page  # noqa: E402
import records  # noqa: E402
import plot  # noqa: E402
import report  # noqa: E402


def results(rows) -> report.Results:
    made = report.Results()
    for workload, impl, params, value in rows:
        made.add({"unit": "ns", "params": params, "value": value, "min": value * 0.9, "max": value * 1.1}, workload, impl)
    return made


def hanoi() -> report.Results:
    return results([("hanoi", impl, {"disks": disks}, value * disks)
                    for impl, value in {"callback": 2.0, "pirn": 2.5, "cpp20": 100.0}.items() for disks in (1, 2, 3, 10, 12)])


class SeriesTest(unittest.TestCase):
    def test_a_series_is_divided_by_its_base_at_each_value(self):
        over, last = report.tables(hanoi(), ["hanoi"])
        self.assertEqual(over[0], "hanoi by disks (of callback)")
        self.assertEqual(over[1], ["implementation", "disks=1", "disks=10", "disks=12"])
        self.assertEqual(over[2], [["callback", "1.00", "1.00", "1.00"], ["pirn", "1.25", "1.25", "1.25"],
                                   ["cpp20", "50.00", "50.00", "50.00"]])
        self.assertEqual(last[0], "hanoi disks=12 (ns)")
        self.assertEqual(last[1][4], "of callback")
        self.assertEqual([line[0] for line in last[2]], ["callback", "pirn", "cpp20"])

    def test_what_lacks_a_value_or_the_base_has_a_dash(self):
        made = results([("hanoi", "callback", {"disks": 1}, 2.0), ("hanoi", "pirn", {"disks": 1}, 3.0),
                        ("hanoi", "pirn", {"disks": 5}, 3.0)])
        over, last = report.tables(made, ["hanoi"])
        self.assertEqual(over[2], [["pirn", "1.50", "-"], ["callback", "1.00", "-"]])
        self.assertEqual(last[2][0][4], "-")

    def test_the_base_is_pirn_or_its_first_variant_or_the_workloads_own(self):
        self.assertEqual(report.base("sum", ["loop", "pirn-foreach", "pirn"]), "pirn")
        self.assertEqual(report.base("transfer", ["corosensei", "pirn-transfer"]), "pirn-transfer")
        self.assertEqual(report.base("hanoi", ["pirn", "callback"]), "callback")
        self.assertEqual(report.base("sum", []), "pirn")

    def test_the_page_shows_the_pictures_that_there_are(self):
        record = records.Record({})
        record.take("hanoi", hanoi())
        self.assertIn("![hanoi](plots/hanoi.svg)", page.pages(records.Records([record]), ["hanoi", "sum-form-for"])["hanoi.md"])
        self.assertNotIn("![", page.pages(records.Records([record]))["hanoi.md"])


def ring() -> report.Results:
    made = report.Results()
    for impl, each, workers in (("pirn-swap", 1, 1), ("go", 0.05, 1), ("pirn-swap", 1.5, 2), ("go", 0.06, 2)):
        for n in (2, 8):
            for count in (16, 800):
                made.add({"unit": "op/s", "value": 1e8 * n * each / count ** 0.1,
                          "params": {"N": n, "coroutines": count, "M": 8_000_000 // count + 100, "D": 0, "P": workers}},
                         "ring", impl)
    return made


class GridTest(unittest.TestCase):
    def test_a_table_has_columns_for_the_values_and_the_base_in_brackets(self):
        tables = report.tables(ring(), ["ring"])
        self.assertEqual([title for title, _, _ in tables],
                         [f"ring D=0 N={n} P={p} (op/s; in brackets: of pirn-swap)" for n in (2, 8) for p in (1, 2)])
        _, heading, lines = tables[0]
        self.assertEqual(heading, ["implementation", "coroutines=16", "coroutines=800"])
        self.assertEqual(lines, [["pirn-swap", "152 M (1.00)", "102 M (1.00)"], ["go", "7.58 M (0.05)", "5.12 M (0.05)"]])

    def test_what_lacks_a_column_has_a_dash_and_so_has_the_base(self):
        made = report.Results()
        for impl, images in {"pirn-copy": (8,), "libaco": (8, 120)}.items():
            for image in images:
                made.add({"unit": "ns", "value": 10.0 if impl == "pirn-copy" else 25.0,
                          "params": {"coroutines": 100, "image": image, "op": "resume"}}, "aco", impl)
        ((_, heading, lines),) = report.tables(made, ["aco"])
        self.assertEqual(heading[1:], ["coroutines=100 image=8", "coroutines=100 image=120"])
        self.assertEqual(lines, [["pirn-copy", "10.00 (1.00)", "-"], ["libaco", "25.00 (2.50)", "25.00"]])

    def test_servers_have_a_table_for_each_measure_and_a_picture_for_each_of_bytes(self):
        made = report.Results()
        for measure, unit in (("per-cpu", "requests/s"), ("p99", "ns")):
            for connections in (8, 100):
                for size in (64, 4096):
                    for impl, share in (("pirn-epoll", 1.0), ("go", 0.5)):
                        made.add({"unit": unit, "value": share * size,
                                  "params": {"connections": connections, "bytes": size, "measure": measure}}, "echo", impl)
        (_, _, times), (title, heading, lines) = report.tables(made, ["echo"])
        self.assertEqual(title, "echo measure=per-cpu (requests/s; in brackets: of pirn-epoll)")
        self.assertEqual(heading[1:], [f"bytes={size} connections={count}" for size in (64, 4096) for count in (8, 100)])
        self.assertEqual([line[0] for line in lines], ["pirn-epoll", "go"])
        self.assertEqual([line[0] for line in times], ["go", "pirn-epoll"], "less is better")
        self.assertEqual(len(plot.pictures("echo", made.rows(["echo"]))), 4)

    def test_a_picture_has_a_panel_for_each_value_and_of_others_only_the_usual_lines(self):
        rows = ring().rows(["ring"])
        panels = plot.grid_panels(rows, report.GRIDS["ring"])
        self.assertEqual(sorted(panels), ["N=2", "N=8"])
        self.assertEqual(len(panels["N=8"]), 8)
        single = [row for row in rows if row["params"]["coroutines"] == 16]
        self.assertEqual(plot.grid_panels(single, report.GRIDS["ring"]), {}, "nothing to draw a line through")


class PlotTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def test_names_at_the_end_of_lines_do_not_overlap(self):
        self.assertEqual(plot.spread([0, 0.5, 5], 1), [0, 1, 5])
        self.assertEqual(plot.spread([], 1), [])

    def test_an_implementation_has_one_colour_and_ours_are_not_among_the_others(self):
        self.assertEqual(plot.colour_of("pirn-unheard-of"), plot.colour_of("pirn-unheard-of"))
        self.assertIn(plot.colour_of("pirn-unheard-of"), plot.WARM)
        self.assertIn(plot.colour_of("unheard-of"), plot.COLD)
        named = {impl: colour for impl, colour in plot.COLOURS.items() if impl != "go-http"}
        self.assertEqual(len(set(named.values())), len(named), "no two have the same")

    def test_without_matplotlib_the_reason_is_said(self):
        with mock.patch.object(plot, "interpreter", return_value=None):
            with self.assertRaisesRegex(RuntimeError, "python3-matplotlib"):
                plot.draw_elsewhere(self.folder, [])

    @unittest.skipUnless(plot.interpreter(), "no Python here has matplotlib")
    def test_a_picture_is_of_one_setting(self):
        rows = results([("trim", "pirn", {"measure": "before", "workers": 1}, 1.0), ("trim", "pirn", {"measure": "before", "workers": 2}, 2.0),
                        ("trim", "go", {"measure": "before", "workers": 2}, 3.0)]).rows(["trim"])
        self.assertEqual([name for name, _, _ in plot.pictures("trim", rows)], ["trim-measure-before-workers-1",
                                                                                "trim-measure-before-workers-2"])
        made = report.Results()
        for unit in ("ns", "B"):
            made.add({"unit": unit, "params": {"a": 1}, "value": 1.0}, "sum", "pirn")
        self.assertEqual([name for name, _, _ in plot.pictures("sum", made.rows(["sum"]))], ["sum-a-1-ns", "sum-a-1-B"])

    @unittest.skipUnless(plot.interpreter(), "no Python here has matplotlib")
    def test_every_implementation_is_in_its_picture(self):
        rows = hanoi().rows(["hanoi"])
        rows += ring().rows(["ring"])
        rows += results([("sum", "loop", {"form": "for"}, 0.3), ("sum", "pirn", {"form": "for"}, 1.0),
                         ("sum", "boost-coroutine2", {"form": "for"}, 30.0), ("sum", "loop", {"form": "while"}, 0.3),
                         ("clock", "pirn", {"measure": "empty-loop"}, 0.3)]).rows(["sum", "clock"])
        names = ["hanoi", "ring-N-2", "ring-N-8", "sum-form-for", "sum-form-while"]
        self.assertEqual(plot.draw_elsewhere(self.folder, rows), names)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), [f"{name}.svg" for name in names])
        again = self.folder / "again"
        plot.draw_elsewhere(again, rows)
        for name, expected in {"hanoi": ["callback", "pirn", "cpp20", "hanoi by disks", "disks"],
                               "ring-N-2": ["ring N=2", "pirn-swap", "pirn-swap P=2", "go", "coroutines"],
                               "sum-form-for": ["loop", "boost-coroutine2", "sum form=for (ns)", "30.00"]}.items():
            path = self.folder / f"{name}.svg"
            words = {"".join(element.itertext()).strip() for element in xml.parse(path).getroot().iter()
                     if element.tag.endswith("}text")}
            self.assertLessEqual(set(expected), words)
            self.assertNotIn("go P=2", words)
            self.assertEqual(path.read_text(), (again / f"{name}.svg").read_text(), "the same rows, the same picture")


if __name__ == "__main__":
    unittest.main()
