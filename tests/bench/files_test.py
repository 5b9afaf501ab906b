"""The file of the workload `file`, and the rows of fio's report."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import files  # noqa: E402
import fio  # noqa: E402
import report  # noqa: E402
import settings  # noqa: E402


class FilesTest(unittest.TestCase):
    def test_each_block_begins_with_its_number_and_a_file_of_the_right_size_stays(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "new" / "file"
            files.prepare(path, 2, "cached")
            data = path.read_bytes()
            self.assertEqual(len(data), 2 * files.MIB)
            self.assertEqual([int.from_bytes(data[at:at + 8], "little") for at in range(0, len(data), files.BLOCK)],
                             list(range(512)))
            path.write_bytes(b"x" * len(data))
            files.prepare(path, 2, "direct")
            self.assertEqual(path.read_bytes()[:1], b"x")
            files.prepare(path, 1, "direct")
            self.assertEqual(path.read_bytes(), data[:files.MIB])


class FioTest(unittest.TestCase):
    def inputs(self, access="direct", depth="8"):
        return {"PIRN_BENCH_ACCESS": access, "PIRN_BENCH_DEPTH": depth, "PIRN_BENCH_BYTES": "4096", "PIRN_BENCH_FILE": "/f",
                "PIRN_BENCH_FILE_MB": "64", "PIRN_BENCH_SECONDS": "3"}

    def test_the_depth_is_of_the_ring_or_a_number_of_threads(self):
        ring, threads = (fio.command(impl, self.inputs()) for impl in ("fio-uring", "fio-psync"))
        self.assertLessEqual({"--ioengine=io_uring", "--iodepth=8", "--direct=1", "--rw=randread", "--runtime=3"}, set(ring))
        self.assertLessEqual({"--ioengine=psync", "--numjobs=8"}, set(threads))
        once = fio.command("fio-uring", self.inputs("sequential"))
        self.assertLessEqual({"--direct=0", "--rw=read"}, set(once))
        self.assertNotIn("--time_based", once)

    def test_its_report_becomes_rows(self):
        percentiles = {"50.000000": 5, "99.000000": 99, "99.900000": 999}
        shown = {"jobs": [{"usr_cpu": 5.0, "sys_cpu": 20.0, "job_runtime": 16000,
                           "read": {"total_ios": 8000, "iops": 4000.0, "lat_ns": {"percentile": percentiles}}}]}
        rows = fio.rows("fio-psync", self.inputs(), shown)
        self.assertEqual({row["params"].pop("measure"): row["value"] for row in rows},
                         {"per-cpu": 2000.0, "throughput": 4000.0, "p50": 5, "p99": 99, "p99.9": 999})
        self.assertEqual(rows[0]["params"], {"access": "direct", "depth": 8, "bytes": 4096})
        results = report.Results()
        for row in rows:
            results.add(row, "file", "fio-psync")

    def test_only_programs_with_a_neighbour_run_at_cold(self):
        suits = {setting.inputs["ACCESS"]: [setting.suits(impl) for impl in ("pirn-uring", "pthread", "fio-uring")]
                 for setting in settings.file("normal")}
        self.assertEqual(suits, {"cached": [True, True, False], "direct": [True] * 3, "sequential": [True] * 3,
                                 "cold": [True, False, False]})


if __name__ == "__main__":
    unittest.main()
