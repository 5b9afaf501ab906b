#!/usr/bin/env python3
"""Builds and runs the conformance program under combinations of compilers and options.

    matrix.py                    each option once, then every pair of options
    matrix.py --once             each option once
    matrix.py --cover            each option in one of few builds, beside others
    matrix.py --triples          every three options together
    matrix.py --product          every combination of all options, but not of an option's second form
    matrix.py --product --part 3/20    the third of twenty parts of it
    matrix.py --list             prints the builds instead
    matrix.py --program coro     the program of tests/coro instead of that of tests/context

It makes the same builds in the same order each time. A build is skipped and named if its compiler is not installed.
"""

import argparse
import concurrent.futures
import itertools
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MOST_BUILDS = 60
MOST_FAILURES_SHOWN = 3
LACKS_PROCESSOR = 77

# The first value of an axis is the usual one. A value consists of a name and flags.
AXES = {
    # lld writes no unwind tables for the stubs of the procedure linkage table, so the checks do without it.
    "compiler": {
        "clang-22": ["clang++-22", "-fuse-ld=lld", "-fno-plt"],
        "clang-22-libc++": ["clang++-22", "-fuse-ld=lld", "-fno-plt", "-stdlib=libc++", "-static-libstdc++"],
        "gcc-12": ["g++-12"],
        "clang-14": ["clang++-14"],
    },
    "optimize": {level: [level] for level in ("-O2", "-O0", "-O1", "-O3", "-Os", "-Oz")},
    # mixed: every other source with a frame pointer; see MIXED.
    "frame": {"no-fp": ["-fomit-frame-pointer"], "fp": ["-fno-omit-frame-pointer"], "mixed": []},
    "position": {"fixed": ["-fno-pie", "-no-pie"], "pic": ["-fPIC"]},
    "lto": {"no-lto": [], "full-lto": ["-flto=full"], "thin-lto": ["-flto=thin"]},
    "cet": {"no-cet": ["-fcf-protection=none"], "cet": ["-fcf-protection=full"]},
    "protector": {
        "no-protector": ["-fno-stack-protector"],
        "protector-strong": ["-fstack-protector-strong"],
        "protector-all": ["-fstack-protector-all"],
    },
    "clash": {"no-clash": [], "clash": ["-fstack-clash-protection"]},
    "vector": {"sse2": [], "avx512": "-mavx512f -mavx512vl -mavx512bw -mavx512dq".split()},
    "fp-words": {"shared": [], "kept": ["-DPIRN_KEEP_FP_WORDS"]},
    "instrument": {
        "no-instrument": [],
        "functions": ["-finstrument-functions"],
        "coverage": ["--coverage"],
        "profile": ["-fprofile-generate"],
    },
    # lld 22 does not link exception handlers in the large model, in a program without pirn either.
    "model": {"small": [], "large": ["-mcmodel=large", "-fuse-ld=bfd"]},
    "loads": {"free-loads": [], "hardened-loads": ["-mspeculative-load-hardening"]},
}
# Second forms of an option: in the covers, but the product would be five times as large with them.
NOT_IN_PRODUCT = {"clang-22-libc++", "clang-22-libunwind", "mixed", "protector-all", "kept", "functions", "coverage", "profile", "large",
                  "hardened-loads"}
# The flags of the two halves of the sources in a mixed build.
MIXED = (["-fomit-frame-pointer"], ["-fno-omit-frame-pointer"])
NAMES = list(AXES)
USUAL = tuple(next(iter(values)) for values in AXES.values())
WARNINGS = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror".split()


def exists(build):
    """Returns whether a combination means anything: link-time optimization goes with lld and clang of the same version,
    which is also the version with a runtime for profiles. Code that clang 14 instruments does not link with libstdc++
    12."""
    chosen = dict(zip(NAMES, build))
    if chosen["compiler"].startswith("clang-22"):
        return chosen["lto"] == "no-lto" or chosen["model"] == "small"
    if chosen["lto"] != "no-lto":
        return False
    if chosen["compiler"] == "gcc-12":
        return chosen["loads"] == "free-loads"
    return chosen["instrument"] == "no-instrument"


def each_once():
    """Returns the usual build, then for each other value the usual build with only that value changed."""
    yield USUAL
    for index, name in enumerate(NAMES):
        for value in list(AXES[name])[1:]:
            yield USUAL[:index] + (value,) + USUAL[index + 1 :]


def combinations_of(known, strength):
    """Returns every choice of `strength` axes with their values, among the axes whose value is known."""
    return set(itertools.combinations(sorted(known.items()), strength))


def covering(builds, strength):
    """Adds to `builds` until every possible combination of `strength` values occurs in one. Greedy: a new build takes
    in the first missing combination and then, axis by axis, the value that covers most of the others."""
    settings = [(axis, value) for axis in range(len(NAMES)) for value in AXES[NAMES[axis]]]
    every = itertools.combinations(settings, strength)
    missing = {wanted for wanted in every if len(dict(wanted)) == strength and build_with(dict(wanted))}
    for build in builds:
        missing -= combinations_of(dict(enumerate(build)), strength)
    while missing:
        first = dict(min(missing))
        best, best_gain = None, 0
        for turn in range(len(NAMES)):  # several orders of filling in the other axes
            known = dict(first)
            for axis in (n % len(NAMES) for n in range(turn, turn + len(NAMES))):
                if axis not in known:
                    fitting = [value for value in AXES[NAMES[axis]] if build_with({**known, axis: value})]
                    known[axis] = max(fitting, key=lambda value: len(
                        {tuple(sorted([(axis, value), *others]))
                         for others in itertools.combinations(known.items(), strength - 1)} & missing))
            gain = len(combinations_of(known, strength) & missing)
            if gain > best_gain:
                best, best_gain = build_with(known), gain
        builds.append(best)
        missing -= combinations_of(dict(enumerate(best)), strength)
    return builds


def build_with(known):
    """Returns the build with these values and otherwise the usual ones, or None: the usual ones go with everything."""
    build = tuple(known.get(axis, USUAL[axis]) for axis in range(len(NAMES)))
    return build if exists(build) else None


def pairs():
    builds = covering(list(each_once()), 2)
    if len(builds) > MOST_BUILDS:
        sys.exit(f"the cover takes {len(builds)} builds, more than {MOST_BUILDS}")
    return builds


def cover():
    vector = NAMES.index("vector")  # alone, as a processor without it runs no such build
    return covering([USUAL, USUAL[:vector] + ("avx512",) + USUAL[vector + 1 :]], 1)


def triples():
    return covering(list(each_once()), 3)


def product():
    return [
        build
        for build in itertools.product(*AXES.values())
        if exists(build) and not NOT_IN_PRODUCT.intersection(build)
    ]


def more_of(chosen):
    """Returns the flags that a combination needs in addition to those of its values."""
    gcc = chosen["compiler"].startswith("gcc")
    # gcc 12 writes no table for the byte between `push $1` and `pop`, by which -Oz loads a constant. clang calls its
    # instrumentation, and where it hardens loads all functions, through stubs for which the linker writes no tables,
    # despite -fno-plt.
    gaps = chosen["optimize"] == "-Oz" if gcc else "functions" in chosen.values() or "hardened-loads" in chosen.values()
    return ["-DCONFORMANCE_TABLES_HAVE_GAPS"] if gaps else []


class Outcome:
    OK, SKIPPED, COMPILED, FAILED = "ok", "skipped", "compiled only", "FAILED"


def compiled(command, sources, halves, program, folder):
    """Compiles and links a program of all sources with the same flags, or of two halves with MIXED. Returns the process that
    failed or was the last."""
    if not halves:
        return subprocess.run([*command, *sources, "-o", program], capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=folder)
    objects = []
    for number, (half, flags) in enumerate(zip(halves, MIXED)):
        objects.append(f"{program}-{number}.o")
        done = subprocess.run([*command, *flags, "-Wno-unused-command-line-argument", "-c", half, "-o", objects[-1]],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=folder)
        if done.returncode != 0:
            return done
    return subprocess.run([*command, *objects, "-o", program], capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=folder)


def attempt(build, folder, source, halves):
    """Compiles and runs one build. Returns the outcome, and the text to print if it failed."""
    flags = [flag for name, value in zip(NAMES, build) for flag in AXES[name][value]]
    flags += more_of(dict(zip(NAMES, build)))
    if not shutil.which(flags[0]):
        return Outcome.SKIPPED, flags[0]
    program = Path(folder) / ("-".join(value.lstrip("-") for value in build))
    command = [*flags, "-std=c++20", *WARNINGS, *(f"-I{ROOT}/{name}" for name in ("include", "tests", "src"))]
    done = compiled(command, [str(source)], halves if "mixed" in build else (), program, folder)
    if done.returncode != 0:
        return Outcome.FAILED, f"{' '.join(command)}\n{done.stderr[-4000:]}"
    try:
        done = subprocess.run([program], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, cwd=folder)
        if done.returncode == LACKS_PROCESSOR:
            return Outcome.COMPILED, ""
        if done.returncode != 0:
            bad = [line for line in done.stdout.splitlines() if not line.startswith("ok ")]
            last = done.stdout.splitlines()[-1:] if done.returncode < 0 else []
            text = "\n".join([f"ended with {done.returncode}", *bad, *last, done.stderr[-2000:]])
            return Outcome.FAILED, f"{' '.join(command)}\n{text}"
        return Outcome.OK, ""
    except subprocess.TimeoutExpired:
        return Outcome.FAILED, f"{' '.join(command)}\nhangs"
    finally:
        program.unlink(missing_ok=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    extent = parser.add_mutually_exclusive_group()
    extent.add_argument("--once", dest="extent", action="store_const", const=each_once, help="each option once")
    extent.add_argument("--cover", dest="extent", action="store_const", const=cover, help="each option in one of few builds")
    extent.add_argument("--triples", dest="extent", action="store_const", const=triples, help="every three options together")
    extent.add_argument("--product", dest="extent", action="store_const", const=product, help="every combination of all options")
    parser.set_defaults(extent=pairs)
    parser.add_argument("--part", metavar="I/N", default="1/1", help="only every Nth build, from the Ith on")
    parser.add_argument("--list", action="store_true", help="print the builds and do nothing")
    parser.add_argument("--program", metavar="FOLDER", default="context", help="the folder of tests/ it is in")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    sources = sorted((HERE.parent / arguments.program).glob("conformance*.cpp"))
    if arguments.program == "coro":  # this program has a second implementation of unwinding
        sources += [ROOT / "src" / "stack" / name for name in ("stack.cpp", "address_space.cpp")]
        AXES["compiler"]["clang-22-libunwind"] = [
            *AXES["compiler"]["clang-22-libc++"], "-rtlib=compiler-rt", "-unwindlib=libunwind"
        ]
    builds = list(arguments.extent())
    index, count = map(int, arguments.part.split("/"))
    builds = builds[index - 1 :: count]
    if arguments.list:
        print("\n".join(" ".join(build) for build in builds))
        return 0

    started = time.monotonic()
    outcomes = dict.fromkeys((Outcome.OK, Outcome.COMPILED, Outcome.SKIPPED, Outcome.FAILED), 0)
    absent = set()
    with tempfile.TemporaryDirectory(prefix="pirn-matrix-") as folder, concurrent.futures.ThreadPoolExecutor(
        arguments.jobs
    ) as pool:
        whole = Path(folder) / "conformance.cpp"  # one file compiles in half the time of five
        whole.write_text("".join(f'#include "{source}"\n' for source in sources))
        halves = [Path(folder) / f"half-{half}.cpp" for half in range(2)]
        for half, path in enumerate(halves):
            path.write_text("".join(f'#include "{source}"\n' for source in sources[half::2]))
        results = pool.map(lambda build: attempt(build, folder, whole, halves), builds)
        for build, (outcome, text) in zip(builds, results):
            outcomes[outcome] += 1
            if outcome == Outcome.FAILED:
                shown = text if outcomes[outcome] <= MOST_FAILURES_SHOWN else ""
                print(f"FAILED {' '.join(build)}\n{shown}\n", flush=True)
            elif outcome == Outcome.SKIPPED:
                absent.add(text)
    for compiler in sorted(absent):
        print(f"skipped: builds with {compiler}, which is not installed")
    told = ", ".join(f"{number} {outcome}" for outcome, number in outcomes.items() if number)
    print(f"{len(builds)} builds: {told}; {time.monotonic() - started:.0f} s")
    return 1 if outcomes[Outcome.FAILED] or not outcomes[Outcome.OK] else 0


if __name__ == "__main__":
    sys.exit(main())
