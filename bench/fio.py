"""Runs fio for the workload `file`, at the setting in the environment, and prints its figures as rows.

    fio.py fio-psync|fio-uring
"""

import json
import os
import subprocess
import sys


def command(impl: str, inputs) -> list[str]:
    access, depth = inputs["PIRN_BENCH_ACCESS"], inputs["PIRN_BENCH_DEPTH"]
    made = ["fio", "--name=file", "--readonly", f"--filename={inputs['PIRN_BENCH_FILE']}", f"--size={inputs['PIRN_BENCH_FILE_MB']}M",
            f"--bs={inputs['PIRN_BENCH_BYTES']}", "--thread", "--group_reporting", "--invalidate=0",
            "--lat_percentiles=1", "--clat_percentiles=0", "--output-format=json",
            f"--direct={int(access == 'direct')}", f"--rw={'read' if access == 'sequential' else 'randread'}"]
    made += ["--ioengine=io_uring", f"--iodepth={depth}"] if impl == "fio-uring" else ["--ioengine=psync", f"--numjobs={depth}"]
    if access != "sequential":
        made += ["--norandommap", "--randrepeat=0", "--time_based", f"--runtime={inputs['PIRN_BENCH_SECONDS']}"]
    return made


def rows(impl: str, inputs, shown: dict) -> list[dict]:
    """Returns the rows of fio's report, whose CPU time is in percent of the time of all its threads."""
    job = shown["jobs"][0]
    read, cpu_seconds = job["read"], (job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] / 1000
    params = {name: int(inputs[f"PIRN_BENCH_{name.upper()}"]) for name in ("depth", "bytes")}
    params = {"access": inputs["PIRN_BENCH_ACCESS"]} | params
    found = [("per-cpu", "requests/s", read["total_ios"] / cpu_seconds), ("throughput", "requests/s", read["iops"])]
    found += [(measure, "ns", read["lat_ns"]["percentile"][f"{float(measure[1:]):.6f}"]) for measure in ("p50", "p99", "p99.9")]
    return [{"workload": "file", "impl": impl, "params": params | {"measure": measure}, "unit": unit, "value": value}
            for measure, unit, value in found]


def main() -> int:
    done = subprocess.run(command(sys.argv[1], os.environ), stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        return done.returncode
    for row in rows(sys.argv[1], os.environ, json.loads(done.stdout[done.stdout.index("{"):])):
        print(json.dumps(row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
