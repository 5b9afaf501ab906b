#!/usr/bin/env python3
"""Builds pirn for other instruction sets and runs the tests of its layers in an emulator.

    cross.py                      everything, on all four sets
    cross.py --target riscv64     on one: aarch64, i386, riscv64, ppc64le
    cross.py --part conformance   the conformance program in all its builds (or: unit, compat, c_api, fiber, sim)
    cross.py --only REGEX         the unit tests and builds whose names match
    cross.py --list               prints what would run

The conformance program is built with gcc and clang at several levels and options. The unit tests of context, stack and
coro are found by their names. So are the programs of compat/aco.h, which are C, on the instruction sets with that
header. The C API's program is C too. i386 runs without an emulator where the kernel allows. Some tests of fiber and
sync are built with gcc at -O2; not for i386, where fibers do not run. So are explorations, of which each may take
--seconds: the emulator is too slow for all executions. Missing tools are named, and their part is skipped.
"""

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CONTEXT = ROOT / "tests" / "context"
GOOGLETEST = Path("/usr/src/googletest/googletest")
WARNINGS = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror".split()
COMMON = ["-std=c++20", "-fasynchronous-unwind-tables", "-fno-plt", "-pthread", f"-I{ROOT}/include", f"-I{ROOT}/tests"]
# Options that are meaningless for a target or without linking.
QUIET = {"gcc": [], "clang": ["-Wno-unused-command-line-argument"]}
MOST_FAILURES_SHOWN = 5
SKIPPED = 77
PARTS = ["conformance", "unit", "compat", "c_api", "fiber", "sim"]
# The layers whose tests run here; their sources, and those of detail, are linked to the tests.
LAYERS = ["context", "stack", "coro"]
# Tests of the host's compilers and sanitizers.
HOST_ONLY = re.compile(r"sanitizer_test|_slow_test")
# qemu-user accepts guard pages and sets none, and a 32-bit address space has no room for the reservations of the tests
# of the pool and of its limits.
NEEDS_GUARDS = re.compile(r"guarded_pool|overflow|stack_stack")
# The tests of fibers that run here, and the sources that they are linked to. Tests of engines, of signals to all threads and
# of processes are left out.
FIBER_TESTS = {
    "fiber": ["body_blocks", "coroutine_in_fiber", "dump", "exceptions", "fiber", "fork_join", "join", "migration", "scope", "stealing",
              "stop", "this_fiber", "timer", "trim", "trim_callers", "unwind_in_fiber", "wait_queue",
              "yield_in_first_half"],
    "sync": ["channel", "condition_variable", "event", "future", "mutex", "select", "semaphore", "task"],
}
FIBER_SOURCES = ["detail", "stack", "coro/c_api", "fiber", "sync", "sync/biased_mutex"]
# The emulator of PowerPC64 LE returns from a signal handler by code of its own, which libgcc's unwinder knows from no
# kernel: the backtrace of a fiber that a signal strikes while it runs ends there.
NEEDS_KERNEL = {"ppc64le": ["dump.tells_names_states_waits_and_functions",
                            "dump.shows_a_fiber_that_never_yields_and_those_behind_it"]}
# The explorations that run here, and the sources of pirn::sim, as cmake/sim.cmake has them.
SIM_TESTS = ["channel", "hand_off_queue", "locks", "queues", "scheduler", "stop", "tasks", "waits"]
SIM_SOURCES = ["stack", "fiber", "sync", "sync/biased_mutex", "io", "net", "http", "sim"]
NOT_IN_SIM = re.compile(r"/(direct_io|epoll_engine|program_start|provided_buffers|uring|uring_engine|signal_set)\.cpp$")


class Target:
    """A cross compiler's name, the emulator that runs its programs, and their peculiarities."""

    def __init__(self, triple, emulator, extra, gcc=(), clang=()):
        self.triple, self.emulator, self.extra = triple, emulator, extra
        self.options = {"gcc": list(gcc), "clang": list(clang)}

    def compiler(self, kind):
        return [f"{self.triple}-g++"] if kind == "gcc" else ["clang++-22", f"--target={self.triple}"]

    def c_compiler(self, kind):
        return [f"{self.triple}-gcc"] if kind == "gcc" else ["clang-22", f"--target={self.triple}"]

    def missing(self, kind):
        """Returns the tools that are not installed. Clang links with the libraries and the linker of gcc."""
        tools = [f"{self.triple}-g++", self.compiler(kind)[0]]
        if not self.runs_natively():
            tools.append(self.emulator)
        return [tool for tool in tools if not shutil.which(tool)]

    def root(self):
        return f"/usr/{self.triple}"

    def runs_natively(self):
        loader = f"{self.root()}/lib/ld-linux.so.2"
        if not hasattr(self, "native"):
            command = [loader, "--version"]
            self.native = self.triple.startswith("i686") and Path(loader).exists() and runs(command)
        return self.native

    def command(self, program):
        if self.runs_natively():
            return [f"{self.root()}/lib/ld-linux.so.2", "--library-path", f"{self.root()}/lib", program]
        return [self.emulator, "-L", self.root(), program]


def runs(command):
    try:
        return subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False).returncode == 0
    except OSError:
        return False


FIXED = ["-fno-pie", "-no-pie"]
# For the libraries of C programs, which need no C++ runtime: an exception that leaves a body reaches a personality
# function of these libraries.
FOR_C = ["-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"]
FRAME = ["-fno-omit-frame-pointer"]
# Builds that are meaningful everywhere, and those of one instruction set.
BUILDS = {
    "O0": ["-O0"],
    "O2": ["-O2"],
    "O3": ["-O3"],
    "Os": ["-Os"],
    "Oz": ["-Oz"],
    "O2-fp": ["-O2", *FRAME],
    "O0-fp": ["-O0", *FRAME],
    "O2-pic": ["-O2", "-fPIC"],
    "O2-fixed": ["-O2", *FIXED],
    "O2-kept": ["-O2", "-DPIRN_KEEP_FP_WORDS"],
    "O2-protector": ["-O2", "-fstack-protector-all"],
}
PROTECTED = ["-mbranch-protection=standard"]
TARGETS = {
    "aarch64": Target("aarch64-linux-gnu", "qemu-aarch64-static", {
        "O0-bti-pac": ["-O0", *PROTECTED],
        "O2-bti-pac": ["-O2", *PROTECTED],
        "O3-bti-pac-leaf": ["-O3", "-mbranch-protection=pac-ret+leaf+bti"],
        "O2-bti-pac-kept": ["-O2", *PROTECTED, "-DPIRN_KEEP_FP_WORDS"],
    }, clang=["-mno-outline"]),  # at -Oz it would move code into functions whose tables are wrong
    # Position-independent code finds its data by a call of a thunk, of which the startup code brings a copy without
    # unwind tables. clang's tables are wrong between that call and its pop.
    "i386": Target("i686-linux-gnu", "qemu-i386-static", {
        "O2-sse2": ["-O2", "-msse2", *FIXED],
        "O0-sse2": ["-O0", "-msse2", *FIXED],
        "O2-sse2-kept": ["-O2", "-msse2", "-DPIRN_KEEP_FP_WORDS", *FIXED],
        "O2-cet": ["-O2", "-fcf-protection=full", *FIXED],
    }),
    "riscv64": Target("riscv64-linux-gnu", "qemu-riscv64-static", {}),
    "ppc64le": Target("powerpc64le-linux-gnu", "qemu-ppc64le-static", {}),
}


def builds_of(name):
    chosen = {**BUILDS, **TARGETS[name].extra}
    if name == "i386":
        chosen = {key: flags + ([] if "-fno-pie" in flags else FRAME if "-fPIC" in flags else FIXED)
                  for key, flags in chosen.items()}
    return chosen


def runs_fibers(name, kind):
    return name != "i386" and kind == "gcc"


class Failure(Exception):
    pass


def call(command, *, timeout=600, keep=()):
    """Runs a command; the end of its output goes into the failure."""
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        raise Failure(f"{' '.join(map(str, command))}\nhangs") from None
    if done.returncode != 0 and done.returncode not in keep:
        lines = [line for line in done.stdout.splitlines() if not line.startswith("ok ")]
        text = "\n".join([*lines[-60:], done.stderr[-3000:]])
        raise Failure(f"{' '.join(map(str, command))}\nended with {done.returncode}\n{text}")


def timed(task, *arguments, **more):
    """Returns the seconds that a task takes."""
    begun = time.monotonic()
    task(*arguments, **more)
    return time.monotonic() - begun


class Workshop:
    """The folder in which one target and one compiler build, and the shared parts of all unit tests."""

    def __init__(self, name, kind, folder):
        self.name, self.kind, self.target = name, kind, TARGETS[name]
        self.folder = Path(folder) / f"{name}-{kind}"
        self.folder.mkdir()

    def compile(self, flags, sources, output, *, link=True, warn=True):
        launcher = [] if link else os.environ.get("CMAKE_CXX_COMPILER_LAUNCHER", "").split()
        command = [*launcher, *self.target.compiler(self.kind), *COMMON, *self.target.options[self.kind],
                   *(WARNINGS if warn else ["-w"]), *QUIET[self.kind], *flags, *sources,
                   *(() if link else ("-c",)), "-o", output]
        if link:
            command += ["-Wl,--as-needed", "-latomic"]
        call(command)

    def program(self, what):
        return self.folder / what

    def conformance(self, build, flags):
        program = self.program(f"conformance-{build}")
        self.compile(flags, sorted(CONTEXT.glob("conformance*.cpp")), program)
        call(self.target.command(program), timeout=900)
        program.unlink()

    def prepare_unit(self, level):
        """Returns GoogleTest and the sources of the layers, as objects."""
        # __x86.get_pc_thunk and the like: as with conformance.
        self.unit_flags = [level, *(FIXED if self.name == "i386" else []), f"-I{ROOT}/src", f"-I{ROOT}/tests",
                           "-isystem", str(GOOGLETEST / "include")]
        self.objects = []
        for source in ("gtest-all.cc", "gtest_main.cc"):
            output = self.program(source + level + ".o")
            self.compile(["-O1", *self.unit_flags[1:], f"-I{GOOGLETEST}"], [GOOGLETEST / "src" / source], output,
                         link=False, warn=False)
            self.objects.append(output)
        for layer in ["detail", *LAYERS]:
            for source in sorted((ROOT / "src" / layer).rglob("*.cpp")):
                output = self.program(f"{layer}-{source.stem}{level}.o")
                self.compile([*self.unit_flags, *(FOR_C if source.parent.name == "c_api" else [])], [source], output, link=False)
                self.objects.append(output)

    def unit(self, source, level):
        program = self.program(f"{source.parent.name}_{source.stem}{level}")
        self.compile(self.unit_flags, [source, *self.objects], program)
        call(self.target.command(program), timeout=900)
        program.unlink()

    def prepare_layers(self, pool, name, flags, sources):
        """Makes a library of GoogleTest and these sources."""
        flags = ["-O2", "-std=c++23", "-fstack-clash-protection", f"-I{ROOT}/src", f"-I{ROOT}/tests", *flags, "-isystem",
                 str(GOOGLETEST / "include")]
        jobs = [(GOOGLETEST / "src" / each, ["-O1", *flags[1:], f"-I{GOOGLETEST}"], False)
                for each in ("gtest-all.cc", "gtest_main.cc")]
        jobs += [(source, [*flags, *(FOR_C if source.parent.name == "c_api" else [])], True) for source in sources]
        objects = [self.program(f"{name}-{source.parent.name}-{source.stem}.o") for source, _, _ in jobs]
        for made in [pool.submit(self.compile, how, [source], output, link=False, warn=warn)
                     for (source, how, warn), output in zip(jobs, objects)]:
            made.result()
        library = self.program(f"lib{name}.a")
        call(["ar", "rcs", library, *objects])
        for each in objects:
            each.unlink()
        return library, flags

    def prepare_fibers(self, pool):
        return self.prepare_layers(pool, "pirn", [], [source for layer in FIBER_SOURCES
                                                      for source in sorted((ROOT / "src" / layer).glob("*.cpp"))])

    def prepare_sim(self, pool):
        sources = [source for layer in SIM_SOURCES for source in sorted((ROOT / "src" / layer).glob("*.cpp"))]
        return self.prepare_layers(pool, "pirn_sim", ["-DPIRN_SIM=1"],
                                   [*(source for source in sources if not NOT_IN_SIM.search(str(source))),
                                    ROOT / "src" / "net" / "resolver" / "resolver.cpp"])

    def with_fibers(self, source, library, flags):
        """Runs a test that is linked to one of these libraries."""
        program = self.program(f"{source.parent.name}_{source.stem}")
        output = program.with_suffix(".o")
        self.compile(flags, [source], output, link=False, warn=False)
        self.compile(["-Wl,--whole-archive", library, "-Wl,--no-whole-archive"], [output], program)
        # Death tests start the program anew, which only this script can.
        without = ":".join(["*death*", *NEEDS_KERNEL.get(self.name, [])])
        call([*self.target.command(program), f"--gtest_filter=-{without}"], timeout=1800)
        program.unlink()
        output.unlink()

    def prepare_compat(self):
        """Builds the library for C programs, which are linked without a C++ runtime."""
        self.compat_object = self.program("compat_aco.o")
        self.compile(["-O2", "-fPIC", *FOR_C, f"-I{ROOT}/src", f"-I{ROOT}/compat"], [ROOT / "src" / "compat" / "aco.cpp"], self.compat_object, link=False)

    def c_api(self, level):
        """Runs the C API's test programs, of C99 and of C11 for the inlined switch, linked without a C++ runtime."""
        library, program = [self.program(f"{name}{level}.o") for name in ("c_api", "c_stack")], self.program(f"c_api{level}")
        for name, output in zip(("c_api", "c_stack"), library):
            self.compile([level, *FOR_C, f"-I{ROOT}/src"], [ROOT / "src" / "coro" / "c_api" / f"{name}.cpp"], output, link=False)
        for standard, *sources in (("c99", "c_api.c"), ("c11", "inline.c", "inline_there.c")):
            call([*self.target.c_compiler(self.kind), f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                  "-fexceptions", *QUIET[self.kind], level, f"-I{ROOT}/include",
                  *(ROOT / "tests" / "c_api" / source for source in sources), *library, "-pthread", "-o", program])
            call(self.target.command(program), timeout=900)
            program.unlink()

    def compat(self, source, flags):
        program = self.program(f"compat_{source.stem}{'_'.join(flags)}")
        # Symbols are bound at the start: a signal that strikes the linker at a first call finds a piece without tables
        # below it, and an emulator is there for long.
        call([*self.target.c_compiler(self.kind), "-std=c99", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-Wl,-z,now",
              *QUIET[self.kind], *flags, f"-I{ROOT}/compat", source, self.compat_object, "-pthread", "-lm", "-o", program])
        call(self.target.command(program), timeout=900)
        program.unlink()


def unit_tests():
    found = [path for layer in LAYERS for path in sorted((ROOT / "tests" / layer).glob("*_test.cpp"))]
    return [path for path in found
            if not HOST_ONLY.search(path.name) and not NEEDS_GUARDS.search(f"{path.parent.name}_{path.name}")]


def fiber_tests():
    return [ROOT / "tests" / layer / f"{name}_test.cpp" for layer, names in FIBER_TESTS.items() for name in names]


def sim_tests():
    return [ROOT / "tests" / "sim" / f"{name}_test.cpp" for name in SIM_TESTS]


def compat_programs(name):
    return sorted((ROOT / "tests" / "compat").glob("aco_*.c")) if name in ("aarch64", "i386") else []


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", action="append", choices=list(TARGETS), default=[])
    parser.add_argument("--compiler", action="append", choices=["gcc", "clang"], default=[])
    parser.add_argument("--part", action="append", choices=PARTS, default=[])
    parser.add_argument("--only", metavar="REGEX", default="")
    parser.add_argument("--level", action="append", default=[], help="of the unit tests; -O0 and -O2 without")
    parser.add_argument("--seconds", type=int, default=2, help="of each exploration; 2 without")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    options = parser.parse_args()
    os.environ["PIRN_TEST_IS_CROSS"] = "1"  # its programs cannot start themselves: only this script can
    os.environ["PIRN_SIM_SECONDS"] = str(options.seconds)
    parts = options.part or PARTS
    levels = options.level or ["-O0", "-O2"]
    started, outcomes, absent = time.monotonic(), {"ok": 0, "FAILED": 0}, set()

    with tempfile.TemporaryDirectory(prefix="pirn-abi-") as folder, concurrent.futures.ThreadPoolExecutor(
            options.jobs) as pool:

        def finish(running):
            for title, future in running:
                try:
                    print(f"ok {title}: {future.result():.0f} s", flush=True)
                    outcomes["ok"] += 1
                except Failure as failure:
                    outcomes["FAILED"] += 1
                    print(f"FAILED {title}", flush=True)
                    if outcomes["FAILED"] <= MOST_FAILURES_SHOWN:
                        print(f"{failure}\n", flush=True)

        for name in options.target or TARGETS:
            for kind in options.compiler or ["gcc", "clang"]:
                if missing := TARGETS[name].missing(kind):
                    absent |= set(missing)
                    continue
                shop, running = Workshop(name, kind, folder), []

                def run(title, task, *arguments, **more):
                    title = f"{name} {kind} {title}"
                    if not re.search(options.only, title):
                        return
                    if options.list:
                        print(title)
                    else:
                        running.append((title, pool.submit(timed, task, *arguments, **more)))

                for build, flags in builds_of(name).items() if "conformance" in parts else ():
                    run(f"conformance {build}", shop.conformance, build, flags)
                finish(running)
                if "compat" in parts and compat_programs(name):
                    running = []
                    if not options.list:
                        shop.prepare_compat()
                    for source in compat_programs(name):
                        for flags in (["-O0"], ["-O2"], ["-O2", "-DACO_CONFIG_SHARE_FPU_MXCSR_ENV"]):
                            run(f"compat_{source.stem} {' '.join(flags)}", shop.compat, source, flags)
                    finish(running)
                running = []
                for level in levels if "c_api" in parts else ():
                    run(f"c_api {level}", shop.c_api, level)
                finish(running)
                for level in levels if "unit" in parts else ():
                    running = []
                    try:
                        if not options.list:
                            shop.prepare_unit(level)
                    except Failure as failure:
                        outcomes["FAILED"] += 1
                        print(f"FAILED {name} {kind} sources {level}\n{failure}\n", flush=True)
                        continue
                    for source in unit_tests():
                        run(f"{source.parent.name}_{source.stem} {level}", shop.unit, source, level)
                    finish(running)
                for part, tests, prepare in (("fiber", fiber_tests(), shop.prepare_fibers),
                                             ("sim", sim_tests(), shop.prepare_sim)):
                    chosen = [each for each in tests
                              if re.search(options.only, f"{name} {kind} {each.parent.name}_{each.stem}")]
                    if part not in parts or not runs_fibers(name, kind) or not chosen:
                        continue
                    running = []
                    try:
                        built = prepare(pool) if not options.list else ()
                    except Failure as failure:
                        outcomes["FAILED"] += 1
                        print(f"FAILED {name} {kind} sources of {part}\n{failure}\n", flush=True)
                        continue
                    for source in chosen:
                        run(f"{source.parent.name}_{source.stem}", shop.with_fibers, source, *built)
                    finish(running)
    for tool in sorted(absent):
        print(f"skipped: what needs {tool}, which is not installed")
    print(f"{outcomes['ok']} passed, {outcomes['FAILED']} failed; {time.monotonic() - started:.0f} s")
    if absent and not outcomes["ok"] and not outcomes["FAILED"]:
        return SKIPPED
    return 1 if outcomes["FAILED"] or not (outcomes["ok"] or options.list) else 0


if __name__ == "__main__":
    sys.exit(main())
