#!/usr/bin/env python3
"""gdb shows the frames of a context down to its root: in a live program, at every instruction of a switch, and in a
core file.    gdb_test.py CONFORMANCE_PROGRAM"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
FRAMES = ["conformance_stop", "stop_inside", "enter_and_stop", "enter", "root_frame"]
# Printed by gdb where it gives up, and instead of a function without a known name.
BAD = ["Backtrace stopped", " ?? ", "corrupt stack", "previous frame"]
STEPS = 150
MARK = "-- backtrace --"
BACKTRACE = ["-ex", f"echo {MARK}\\n", "-ex", "backtrace", "-ex", f"echo {MARK}\\n"]

# Steps from the breakpoint through the yield, the other side and back, and looks at each instruction.
STEPPING = f"""
python
marks = 0
for step in range({STEPS}):
    gdb.execute("stepi", to_string=True)
    trace = gdb.execute("backtrace", to_string=True)
    if any(bad in trace for bad in {BAD!r}):
        print("BAD after step", step, trace)
        break
    ends_well = any(name in trace.splitlines()[-1] for name in ("root_frame", "start_frame", "main ("))
    if not ends_well:
        print("BAD end after step", step, trace)
        break
    marks |= 1 if "root_frame" in trace else 2
print("stepped, stacks seen:", marks)
end
"""


def gdb(*arguments):
    command = ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set confirm off", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=100)
    return done.stdout + done.stderr


def traces_in(output):
    """Returns the requested backtraces as lists of lines, without the frame that gdb also shows where it stops."""
    return [
        [line for line in part.splitlines() if line.startswith("#")] for part in output.split(f"{MARK}\n")[1::2]
    ]


def check(what, output, count):
    traces = traces_in(output)
    wrong = [bad for bad in BAD if bad in output]
    if len(traces) != count:
        wrong.append(f"{len(traces)} backtraces, not {count}")
    for trace in traces:
        trace = [line for line in trace if "by_transfers<" not in line]  # a frame that two shapes share, inlined or not
        if len(trace) != len(FRAMES):
            wrong.append(f"{len(trace)} frames, not {len(FRAMES)}")
        wrong += [f"no {name}" for name, line in zip(FRAMES, trace) if name not in line]
    print(("FAILED " if wrong else "ok     ") + what)
    if wrong:
        print("       " + "; ".join(wrong) + "\n" + output)
    return not wrong


def main():
    program = sys.argv[1]
    if not shutil.which("gdb"):
        print("gdb is not installed")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="pirn-gdb-") as folder:
        core = str(Path(folder) / "core")
        run = ["-ex", "break conformance_stop", "-ex", f"run --stop >{folder}/output"]
        live = gdb(*run, *BACKTRACE, "-ex", f"generate-core-file {core}", "-ex", "continue", *BACKTRACE,
                   "-ex", "continue", program)
        if "Couldn't get registers" in live or "ptrace: Operation not permitted" in live:
            print("this machine forbids debuggers")
            return SKIPPED
        good = check("live program, both shapes", live, 2)
        good = check("core file", gdb(*BACKTRACE, program, core), 1) and good

        script = Path(folder) / "steps"
        script.write_text(STEPPING)
        for shape, more in (("switch_to", []), ("transfer", ["-ex", "continue"])):
            stepped = gdb(*run, *more, "-x", str(script), program)
            fine = "BAD" not in stepped and "stepped, stacks seen: 3" in stepped
            print(("ok     " if fine else "FAILED ") + f"every instruction, {shape}" + ("" if fine else "\n" + stepped))
            good = good and fine
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
