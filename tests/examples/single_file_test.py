"""Builds single files as `./dev run FILE.cpp` does: by the file for ninja that the build has written."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

BUILD = Path(sys.argv[1])
# A program that uses a library of others, and one that is explored.
NAMES = """#include <cstdio>
#include "pirn/fiber/runtime.hpp"
#include "pirn/net/resolver.hpp"
int main() {
  return pirn::runtime({.workers = 1}).run([] {
    const auto found = pirn::resolver().look_up("127.0.0.1");
    std::puts(found ? found->at(0).to_string().c_str() : found.error().message().c_str());
    return 0;
  });
}
"""
EXPLORED = """#include <cstdio>
#include "pirn/fiber/runtime.hpp"
#include "pirn/sim/explore.hpp"
int main() {
  const auto done = pirn::sim::explore([] { pirn::runtime({.workers = 1}).run([] { pirn::this_fiber::yield(); }); });
  std::puts(done ? "passed" : done.message.c_str());
}
"""


def output_of(flags: str, source: str) -> str:
    description = BUILD / f"{flags}.ninja"
    libraries = re.search("^libraries = (.*)$", description.read_text(), re.M).group(1)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "main.cpp").write_text(source)
        (folder / "build.ninja").write_text(f"include {description}\nbuild main: program main.cpp | {libraries}\n")
        done = subprocess.run(["ninja"], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{flags}: {done.stdout}{done.stderr}")
        return subprocess.run([folder / "main"], capture_output=True, text=True, check=True).stdout


for flags, source, expected in (("run", NAMES, "127.0.0.1\n"), ("run_sim", EXPLORED, "passed\n")):
    shown = output_of(flags, source)
    if shown != expected:
        sys.exit(f"{flags}: {shown!r} instead of {expected!r}")
