#!/usr/bin/env python3
"""Builds and runs thread_locals/moved.cpp: thread_locals_moved.py VERSION PLUGIN INCLUDE [all].

The optimized program makes mistakes, which shows that the test looks, and none in the mode `safe`, whichever
optimizations follow the pass: with `all` at each level, position-independent, and with both kinds of link-time
optimization, with and without the plugin in the linker. Ends with 77, skipped, where that clang or its linker is
missing.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = Path(__file__).parent / "thread_locals"
LINKED = ["-O2", "-flto", "-fuse-ld=lld"]
THIN = ["-O2", "-flto=thin", "-fuse-ld=lld"]


def main() -> int:
    version, plugin, include = sys.argv[1:4]
    compiler = f"clang++-{version}"
    for tool in (compiler, f"ld.lld-{version}"):
        if shutil.which(tool) is None:
            print(f"skipped: no {tool}")
            return 77
    safe = [f"-fplugin={plugin}", f"-fpass-plugin={plugin}", "-mllvm", "-pirn-thread-locals=safe"]
    in_linker = [f"-Wl,--load-pass-plugin={plugin}"]
    builds = [(["-O2"], True), (["-O2", *safe], False), ([*LINKED, *safe], False)]
    if "all" in sys.argv[4:]:
        builds = [(LINKED, True), (["-O0", *safe], False), (["-O1", *safe], False), (["-O3", *safe], False),
                  (["-O2", "-fPIC", "-ftls-model=global-dynamic", *safe], False), ([*LINKED, *safe, *in_linker], False),
                  ([*THIN, *safe], False), ([*THIN, *safe, *in_linker], False)]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/moved"
        for flags, wrong in builds:
            subprocess.run([compiler, "-std=c++20", f"-I{include}", *flags, *map(str, sorted(SOURCES.glob("*.cpp"))),
                            "-pthread", "-o", program], check=True)
            done = subprocess.run([program], capture_output=True, text=True, timeout=60)
            if done.returncode != int(wrong):
                print(" ".join(flags), f"ends with {done.returncode}, not {int(wrong)}; it says:", done.stdout, done.stderr)
                failed += 1
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main())
