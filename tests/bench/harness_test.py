"""The bench harness: its results from the rows of well-behaved and of misbehaving programs."""

import argparse
import contextlib
import io
import json
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import report  # noqa: E402
import counts  # noqa: E402
import records  # noqa: E402
import rivals  # noqa: E402
import run  # noqa: E402
import settings  # noqa: E402


def script(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def row(workload="yield", impl="fake", value=1.0, unit="ns", **more) -> str:
    made = {"workload": workload, "impl": impl, "params": {"fibers": 10}, "unit": unit, "value": value} | more
    return json.dumps(made)


class HarnessTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def measure(self, workloads=("yield",), rounds=3):
        """Runs the scripts of the folder as rivals from outside. Returns the bench and its output."""
        options = argparse.Namespace(names=list(workloads), rounds=rounds, quick=True, rivals=[], json=None, docs=False)
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            bench = run.Bench(options, rivals.outside(self.folder, options.names))
            bench.measure()
        return bench, said.getvalue()

    def test_rows_become_median_min_max_and_rounds(self):
        script(self.folder, "fake", f"""
            count=$(cat {self.folder}/count 2>/dev/null || echo 0); echo $((count + 1)) >{self.folder}/count
            case $count in 0) value=5.5 ;; 1) value=1 ;; *) value=2.25 ;; esac
            echo '{row()}' | sed "s/1.0/$value/" """)
        bench, _ = self.measure()
        (found,) = bench.results.rows(["yield"])
        self.assertEqual(found, {"workload": "yield", "impl": "fake", "params": {"fibers": 10}, "unit": "ns",
                                 "median": 2.25, "min": 1, "max": 5.5, "rounds": 3})
        self.assertEqual(tuple(found), report.KEYS)

    def test_the_workload_is_the_argument(self):
        script(self.folder, "fake", """printf '{"workload":"%s","impl":"fake","unit":"ns","value":3}\\n' "$1" """)
        bench, _ = self.measure(["switch", "spawn"])
        self.assertEqual([found["workload"] for found in bench.results.rows(rivals.WORKLOADS)], ["switch", "spawn"])

    def test_inputs_reach_the_program(self):
        script(self.folder, "fake", f"""echo '{row()}' | sed "s/1.0/$PIRN_BENCH_FIBERS/" """)
        bench, _ = self.measure()
        self.assertEqual(bench.results.rows(["yield"])[0]["median"], run.INPUTS["FIBERS"])

    def test_programs_from_outside_are_kept_if_they_tell_their_revision(self):
        script(self.folder, "fake", f"echo '{row()}'")
        script(self.folder, "other", f"echo '{row(impl='other')}'")
        (self.folder / "fake.revision").write_text("r17\n")
        bench, _ = self.measure()
        record, said = records.Record({}), io.StringIO()
        with contextlib.redirect_stderr(said):
            run.keep(record, bench, ["yield"])
        self.assertEqual({impl: kept["revision"] for impl, kept in record.runs["yield"]["outside"].items()}, {"fake": "r17"})
        self.assertIn("yield/other: no file beside the program names its revision", said.getvalue())

    def test_unknown_workloads_are_ignored_with_a_message(self):
        script(self.folder, "fake", f"echo '{row()}'; echo '{row(workload='teleport')}'")
        bench, said = self.measure()
        self.assertEqual(len(bench.results.rows(["yield"])), 1)
        self.assertIn("teleport", said)

    def test_programs_that_measure_rounds_themselves(self):
        script(self.folder, "fake", "echo '[" + row(value=7, min=6, max=9) + "]'")
        (found,) = self.measure()[0].results.rows(["yield"])
        self.assertEqual((found["median"], found["min"], found["max"]), (7, 6, 9))

    def test_what_fails_is_dropped_and_said(self):
        for name, body in {
            "crash": f"echo '{row()}'; echo 'check failed: fibers ran' >&2; exit 1",
            "no-unit": f"echo '{row(unit='furlong')}'",
            "no-number": f"""echo '{row(value="fast")}'""",
            "not-json": "echo '{oops'",
            "silent": "true",
        }.items():
            with self.subTest(name):
                for path in self.folder.iterdir():
                    path.unlink()
                script(self.folder, name, body)
                bench, _ = self.measure()
                self.assertEqual(bench.results.rows(["yield"]), [])
                self.assertEqual(len(bench.skipped), 1)
                self.assertIn(f"yield/{name}: ", bench.skipped[0])

    def at(self, *chosen):
        """Sets the points at which yield is measured for the rest of the test."""
        patch = mock.patch.dict(settings.SWEEPS, {"yield": lambda scale: list(chosen)})
        patch.start()
        self.addCleanup(patch.stop)

    def test_a_program_runs_at_each_setting_with_its_inputs_and_variables(self):
        self.at(settings.Setting({"FIBERS": 3}, {"FAKE_ALLOCATOR": "5"}), settings.Setting({"FIBERS": 4}))
        script(self.folder, "fake", f"""
            echo '{row()}' | sed "s/1.0/$((PIRN_BENCH_FIBERS * 10 + FAKE_ALLOCATOR))/; s/: 10}}/: $PIRN_BENCH_FIBERS}}/" """)
        bench, _ = self.measure()
        self.assertEqual([(found["params"]["fibers"], found["median"]) for found in bench.results.rows(["yield"])],
                         [(3, 35), (4, 40)])

    def test_a_setting_that_is_beyond_a_program_is_told_once_and_costs_no_other_row(self):
        self.at(settings.Setting({"FIBERS": 3}), settings.Setting({"FIBERS": 4000}), settings.Setting({"FIBERS": 5}, cores=9999))
        script(self.folder, "fake", f"""
            if [ $PIRN_BENCH_FIBERS = 4000 ]; then echo 'needs 1 TiB of memory' >&2; exit 77; fi
            echo '{row()}'""")
        bench, _ = self.measure()
        self.assertEqual(len(bench.results.rows(["yield"])), 1)
        self.assertEqual(bench.results.rows(["yield"])[0]["rounds"], 3)
        self.assertEqual(bench.skipped[0], "yield/fake, FIBERS=4000: needs 1 TiB of memory")
        self.assertIn("needs 9999 cores", bench.skipped[1])
        self.assertEqual(len(bench.skipped), 2)
        self.assertFalse(bench.failed)

    def test_what_takes_too_long_at_one_setting_is_measured_at_the_others(self):
        self.at(settings.Setting({"FIBERS": 3}), settings.Setting({"FIBERS": 4}))
        script(self.folder, "fake", f"[ $PIRN_BENCH_FIBERS = 3 ] || exec sleep 9; echo '{row()}'")
        with mock.patch.object(run, "LIMIT_S", 1):
            bench, _ = self.measure(rounds=2)
        self.assertEqual(bench.results.rows(["yield"])[0]["rounds"], 2)
        self.assertEqual(bench.skipped, ["yield/fake, FIBERS=4: takes more than 1 s"])

    def test_a_setting_leaves_out_whom_it_names(self):
        self.at(settings.Setting({"FIBERS": 3}, without=("slow",)))
        script(self.folder, "slow", f"echo '{row(impl='slow')}'")
        script(self.folder, "fake", f"echo '{row()}'")
        self.assertEqual([found["impl"] for found in self.measure()[0].results.rows(["yield"])], ["fake"])

    def test_every_scale_has_settings_and_the_rounds_of_the_source(self):
        for workload in settings.SWEEPS:
            self.assertIn(workload, rivals.WORKLOADS)
            sizes = [len(settings.of(workload, scale)) for scale in ("quick", "normal", "sweep")]
            self.assertEqual(sizes, sorted(sizes))
        for setting in settings.ring("normal") + settings.ring("sweep"):
            n, count, rounds = (setting.inputs[name] for name in ("N", "COROUTINES", "M"))
            self.assertEqual(rounds, 8_000_000 // n // (count // n) + 100)
            self.assertEqual(count % n, 0)

    def test_a_program_that_fails_in_a_later_round_shows_nothing(self):
        script(self.folder, "fake", f"""
            echo '{row()}'
            if [ -e {self.folder}/ran ]; then exit 1; fi; touch {self.folder}/ran""")
        bench, _ = self.measure()
        self.assertEqual(bench.results.rows(["yield"]), [])
        self.assertEqual(len(bench.skipped), 1)

    def test_a_failing_program_of_the_tree_fails_the_run(self):
        script(self.folder, "fake", "exit 1")
        options = argparse.Namespace(names=["yield"], rounds=1, quick=True)
        with contextlib.redirect_stderr(io.StringIO()):
            bench = run.Bench(options, [rivals.Program("yield", "fake", [str(self.folder / "fake")])])
            bench.measure()
        self.assertTrue(bench.failed)

    def test_tables_put_the_best_first_and_divide_by_pirn(self):
        results = report.Results()
        for impl, value in {"slow": 8.0, "pirn": 4.0, "quick": 2.0}.items():
            results.add({"unit": "ns", "params": {}, "value": value}, "yield", impl)
            results.add({"unit": "requests/s", "params": {}, "value": value}, "callbacks", impl)
        times, rates = report.tables(results, ["yield", "callbacks"])
        self.assertEqual([line[0] for line in times[2]], ["quick", "pirn", "slow"])
        self.assertEqual([line[4] for line in times[2]], ["0.50", "1.00", "2.00"])
        self.assertEqual([line[0] for line in rates[2]], ["slow", "pirn", "quick"])

    def test_cycles_are_gross_and_net_of_the_empty_loop(self):
        results = report.Results()
        results.add({"unit": "cycles/s", "params": {"measure": "frequency"}, "value": 4e9}, "clock", "pirn")
        results.add({"unit": "ns", "params": {"measure": "empty-loop"}, "value": 0.5}, "clock", "pirn")
        results.add({"unit": "ns", "params": {}, "value": 2.0}, "switch", "pirn")
        ((_, heading, (line,)),) = report.tables(results, ["switch"])
        self.assertEqual(dict(zip(heading, line))["cycles"], "8.0")
        self.assertEqual(dict(zip(heading, line))["net"], "6.0")

    def test_pirn_of_a_revision_is_built_in_its_own_folder_and_measured_where_pirn_is(self):
        def git(*words):
            subprocess.run(["git", "-C", str(self.folder), "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True,
                           capture_output=True)

        git("init", "-q")
        for name in ("yield/pirn.cpp", "yield/pirn-co.cpp", "yield/go.go", "yield/st.cpp"):
            (self.folder / "bench" / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / "bench" / name).write_text("")
        git("add", "-A")
        git("commit", "-q", "-m", "x")
        (self.folder / "bench/yield/pirn-new.cpp").write_text("")  # not of that revision
        commands = []
        with mock.patch.multiple(rivals, ROOT=self.folder, BUILD=self.folder / "build",
                                 _run=lambda command, **_: commands.append(command) or ("wrong" if "bench_yield_pirn-co" in command else "")):
            programs = rivals.against("HEAD", ["yield", "no-such"])
            with self.assertRaisesRegex(RuntimeError, "no revision nowhere"):
                rivals.against("nowhere", ["yield"])
        self.assertEqual([(each.impl, each.skipped) for each in programs],
                         [("pirn@HEAD", ""), ("pirn-co@HEAD", "does not build: wrong")])
        self.assertIn("/against/", programs[0].command[0])
        self.assertEqual(programs[0].command_with_own_words, programs[0].command)
        setting = settings.Setting(only=("pirn",))
        self.assertTrue(setting.suits("pirn@HEAD"))
        self.assertFalse(setting.suits("pirn-co@HEAD"))

    def test_rounds_are_divided_by_those_of_the_other_revision(self):
        results = report.Results()
        for now, before in ((2.0, 1.0), (30.0, 20.0), (1.0, 1.0)):  # the second round was slow for both
            for impl, value in (("pirn", now), ("pirn@HEAD", before), ("pirn-new", now)):
                results.add({"unit": "ns", "value": value, "params": {"fibers": 10}}, "yield", impl)
                results.add({"unit": "x/s", "value": 60 / value}, "callbacks", impl)
        (title, heading, lines), = report.paired_tables(results, ["yield", "callbacks"])
        self.assertIn("cost divided by that of HEAD", title)
        self.assertEqual(lines, [["yield fibers=10", "pirn", "1.500", "1.000", "2.000", "3"],
                                 ["callbacks", "pirn", "1.500", "1.000", "2.000", "3"]])
        self.assertEqual(len(heading), len(lines[0]))
        self.assertIn(title, report.text(results, ["yield", "callbacks"]))
        self.assertEqual(report.paired_tables(results, ["callbacks"])[0][2], lines[1:])
        self.assertEqual(report.paired_tables(results, ["spawn"]), [])

    def test_a_script_whose_command_is_missing_is_skipped(self):
        for suffix, mark in {".sh": "#", ".escript": "%%"}.items():
            path = self.folder / f"fake{suffix}"
            path.write_text(f"#!/bin/sh\n{mark} needs: command no-such-command\n")
            self.assertEqual(rivals._build_script([path]), {path: "no-such-command is not installed"})

    def test_every_implementation_has_a_file_in_a_known_workload(self):
        files = rivals.sources(rivals.WORKLOADS)
        self.assertEqual({impl for of, impl in files if of == "http-hello"}, {"pirn", "pirn-uring", "nginx", "go-http", "may-minihttp"})
        for workload in rivals.WORKLOADS:
            impls = [impl for of, impl in files if of == workload]
            ours = [impl for impl in impls if rivals.is_ours(impl)]
            self.assertEqual(impls[:len(ours)], ours, "pirn's own come first")

    def test_rows_of_gcc_are_of_programs_that_gcc_has_built(self):
        commands = []
        with mock.patch.multiple(rivals, GCC="python3", _run=lambda command, **_: commands.append(command) or (
                "wrong" if "bench_client_classic" in command else "")):
            programs = rivals._build_by_gcc(rivals.sources(["yield", "client", "switch"]))
        self.assertEqual({(each.name, each.skipped) for each in programs},
                         {("yield/pirn-gcc", ""), ("yield/pirn-co-gcc", ""), ("client/pirn-attribute-gcc", ""),
                          ("client/classic-gcc", "does not build: wrong")})
        self.assertIn("-DCMAKE_CXX_COMPILER=python3", commands[0])
        for each in programs:
            self.assertEqual(each.command, [str(rivals.GCC_BUILD / "rivals" / each.workload / each.source)])
            self.assertTrue(settings.Setting(only=(each.source,)).suits(each.impl))
            self.assertTrue(counts.countable(each, rivals.HERE))

    def test_without_gcc_its_rows_are_skipped_with_the_reason(self):
        with mock.patch.multiple(rivals, GCC="no-such-compiler"):
            programs = rivals._build_by_gcc(rivals.sources(["spawn"]))
        self.assertEqual([(each.impl, each.skipped) for each in programs], [("pirn-gcc", "no-such-compiler is not installed")])

    def test_workloads_that_share_a_folder_have_the_same_programs_which_are_built_once(self):
        asked = []
        with mock.patch.multiple(rivals, _build_cpp=lambda files: asked.append(list(files)) or {path: "no compiler" for path in files},
                                 _build_go=lambda files: {}, _build_rust=lambda files: {}, _build_drivers=lambda files: {}):
            programs = rivals.build(["echo", "unix"])
        of = {workload: [(each.impl, each.command, each.skipped) for each in programs if each.workload == workload]
              for workload in ("echo", "unix")}
        self.assertEqual(of["echo"], of["unix"])
        self.assertIn(("limit-epoll", [str(rivals.RIVALS / "echo/limit-epoll")], "no compiler"), of["unix"])
        self.assertEqual(len(asked[0]), len(set(asked[0])))


if __name__ == "__main__":
    unittest.main()
