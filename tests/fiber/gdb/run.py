"""Shows a program's fibers with tools/pirn_gdb.py: live, in a core file, and without debug information.

usage: run.py GDB PROGRAM SCRIPT OBJCOPY
"""

import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77  # SKIP_RETURN_CODE of the ctest entry

# Number, name, worker, state, what it waits for, where.
FIBERS = [
    r"\d+  spinner +1\.0 +running +spins\S* \(\S+:\d+\)",
    r"\d+  fresh +1\.0 +not started +pirn::detail::fiber_block<.*>::entry.*",
    r"\d+  sleeper +1\.1 +waiting +time to pass +sleeps\S* \(fibers\.cpp:\d+\)",
    r"\d+  waiter +1\.1 +waiting +a letter at 0x[0-9a-f]+ +waits_deep\S* \(fibers\.cpp:\d+\)",
    r"\d+  joiner +1\.1 +waiting +end of fiber at 0x[0-9a-f]+ +\S*operator\(\).* \(fibers\.cpp:\d+\)",
    r"\d+  inner +1\.1 +waiting +a letter at 0x[0-9a-f]+ +waits_deep\S* \(fibers\.cpp:\d+\)",
    r"\d+  yielder +1\.0 +ready .*\byields\S* \(fibers\.cpp:\d+\)",
    r"7 fibers",
]


def gdb(arguments: list[str], commands: list[str]) -> str:
    line = [arguments[0], "-q", "-batch", "-nx", "-ex", "set pagination off", "-ex", "set debuginfod enabled off",
            "-ex", "set width 0", "-ex", "set confirm off"]
    for command in commands:
        line += ["-ex", command]
    done = subprocess.run(line + arguments[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100)
    if re.search(r"ptrace: Operation not permitted|Could not trace the inferior", done.stdout):
        print(done.stdout)
        print("this machine does not allow gdb to trace a program")
        sys.exit(SKIPPED)
    return done.stdout


def expect(what: str, text: str, *patterns: str) -> None:
    for pattern in patterns:
        if not re.search(pattern, text, re.M | re.S):
            sys.exit(f"{what}: nothing like\n    {pattern}\nin\n{text}")


def backtrace(text: str, name: str) -> str:
    found = re.search(rf'^fiber \d+ "{name}": .*?\n\n', text, re.M | re.S)
    if not found:
        sys.exit(f"no backtrace of {name} in\n{text}")
    return found.group(0)


def check_view(what: str, text: str) -> None:
    for row in FIBERS:
        expect(what, text, rf"^ *{row}$")
    whole = r".*^#\d+ .* pirn::arch::root_frame \(\)"
    expect(what, backtrace(text, "spinner"), r"running.*\n#\d+ .*\bspins \(\) at " + whole)
    expect(what, backtrace(text, "fresh"), r"not started.*\nbegins in pirn::detail::fiber_block<")
    expect(what, backtrace(text, "sleeper"), r"waiting for time to pass.*\n#0 .*^#\d+ .*\bsleeps \(\) at " + whole)
    deep = backtrace(text, "waiter")
    expect(what, deep, r"waiting for a letter at .*\n#0 .*" + r"^#\d+ .*\bwaits_deep \(depth=.*" * 3 + whole)
    if "O0" in what:
        expect(what, deep, r"depth=1\).*below = 0.*depth=2\).*below = 1.*depth=3\).*below = 2")
    inlined = backtrace(text, "yielder")
    expect(what, inlined, r"\n#0 .*\byields \(step=.*" + whole)
    if "O0" in what:
        expect(what, inlined, r"yields \(step=6\).*kept = 7")
    expect(what, backtrace(text, "joiner"), r"end of fiber at .*\n#0 .*pirn::fiber::join \(this=" + whole)
    # The debugger's own view is unchanged.
    expect(what, text, r"selected before: 1\n.*selected after: 1\n#0 .*\bready_to_be_looked_at \(")


def check_constants(script: Path) -> None:
    """The script has the headers' numbers. Otherwise it could miss a fiber of a kind that no program here has."""
    headers = "".join((script.parents[1] / "include/pirn/fiber/detail" / name).read_text() for name in ("agent.hpp", "control.hpp"))
    of_script = dict(re.findall(r"^([A-Z_]+) = (\d+)\b", script.read_text(), re.M))
    for name in ("WAITING_BIT", "COLD_PART_BIT", "NUMBER_SHIFT", "HOME_BITS"):
        of_header = re.search(rf"\b{name.lower()} = (\d+);", headers)
        if not of_header or of_header.group(1) != of_script.get(name):
            sys.exit(f"{name} of {script} is not that of the headers")


def main() -> None:
    debugger, program, script, objcopy = sys.argv[1:]
    check_constants(Path(script))
    what = Path(program).name
    look = [f"source {script}", r'printf "selected before: %d\n", $_thread', "pirn fibers", "pirn bt all full",
            r'printf "selected after: %d\n", $_thread', "backtrace"]
    with tempfile.TemporaryDirectory() as folder:
        core = f"{folder}/gcore"
        stop = ["break ready_to_be_looked_at", "run"]
        live = gdb([debugger, program], stop + look + ["pirn bt 4000000", "pirn bt", "kill"])
        check_view(what + " live", live)
        expect("errors", live, r"pirn: there is no fiber 4000000", r"pirn: pirn bt needs the number of a fiber, or all")

        gdb([debugger, program], stop[:1] + ["run protected", f"generate-core-file {core}", "kill"])
        dead = gdb([debugger, program, core], look)
        check_view(what + " gcore", dead)
        number = re.search(r"^ *(\d+)  waiter", dead, re.M).group(1)
        expect("one backtrace", gdb([debugger, program, core], [f"source {script}", f"pirn bt {number} 1"]),
               rf'^fiber {number} "waiter": waiting for a letter at [^\n]*\n#0 ')

        if not Path("/proc/sys/kernel/core_pattern").read_text().startswith(("|", "/")):
            subprocess.run([program, "abort"], cwd=folder, check=False, timeout=100,
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, 2 * (resource.RLIM_INFINITY,)))
            for core in Path(folder).glob("core*"):
                check_view(what + " core of the kernel", gdb([debugger, program, str(core)], look))

        bare = f"{folder}/bare"
        subprocess.run([objcopy, "--strip-debug", program, bare], check=True)
        expect("without debug information", gdb([debugger, bare], stop + [f"source {script}", "pirn fibers", "kill"]),
               r"pirn: found the list of runtimes \(pirn_runtimes_v1_\w+\), but not its type: .* build it with -g")
        expect("without a process", gdb([debugger, program], [f"source {script}", "pirn fibers"]), r"pirn: no process")
        expect("without pirn", gdb([debugger, "/bin/sleep"], [f"source {script}", "starti", "pirn bt all", "kill"]),
               r"pirn: this program has no symbol pirn_runtimes_")


main()
