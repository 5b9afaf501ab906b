"""An installed pirn without CMake: programs built by the lines of the README, static, shared, and after the install was moved."""

import argparse
import re
import shutil
import sys
from pathlib import Path

from user_machine import OUTSIDE, Machine, blocks_of


def lines_of_the_readme() -> tuple[str, str]:
    """What it says builds main.cpp: with pkg-config, and without."""
    lines = re.findall(r"^\w+\+\+\S* (.*\bmain\.cpp\b.*?)(?: *#.*)?$", blocks_of("README.md", "sh", "pkg-config"), re.M)
    found = [line for line in lines if "pkg-config" in line], [line for line in lines if "pkg-config" not in line]
    if len(found[0]) != 1 or len(found[1]) != 1:
        sys.exit(f"one line with pkg-config and one without is what the README should have: {found}")
    return found[0][0], found[1][0]


class Prefix:
    """A prefix that the user owns. Lines of shell run with it where pkg-config and the loader look for it."""

    def __init__(self, machine: Machine, folder: Path) -> None:
        self.machine, self.folder = machine, folder

    def run(self, line: str) -> str:
        return self.machine.run(line, PKG_CONFIG_PATH=self.folder / "lib/pkgconfig", LD_LIBRARY_PATH=self.folder / "lib")

    def program(self, line: str) -> None:
        """Builds ./main by a line of shell and runs it. DIR in the line is the prefix."""
        self.run(f"rm -f main && {line.replace('DIR/', str(self.folder) + '/')} && ./main")

    def share(self, cxx: str, layers: list[str]) -> None:
        """Makes what BUILD_SHARED_LIBS=ON would have installed out of the static libraries."""
        left: list[str] = []
        for layer in layers:
            archive = self.folder / f"lib/libpirn_{layer}.a"
            if not archive.exists():
                continue  # has headers only
            shared = archive.with_suffix(".so")
            self.run(f"{cxx} -shared -Wl,--whole-archive {archive} -Wl,--no-whole-archive {' '.join(left)} "
                     f"-Wl,-soname,{shared.name} -o {shared} && rm {archive}")
            left.insert(0, str(shared))


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("prefix", "dir", "cc", "cxx", "layers"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    layers, cc, cxx = options.layers.split(","), Path(options.cc).name, Path(options.cxx).name
    machine = Machine(Path(options.dir), options.cc, options.cxx)
    prefix = Prefix(machine, machine.home / "prefix")
    machine.run("cp", "-R", options.prefix, prefix.folder)
    shutil.copy(OUTSIDE / "fibers.cpp", machine.home / "main.cpp")

    # Static, the layers by themselves and the libraries for C too.
    by_pkg_config, by_hand = lines_of_the_readme()
    prefix.program(f"{cxx} {by_pkg_config}")
    prefix.program(f"{cxx} -std=c++20 {OUTSIDE}/contexts.cpp $(pkg-config --cflags --libs pirn-context) -o main")
    for name, reports in (("pirn-fiber", False), ("pirn-held-mutexes", True)):
        prefix.program(f"{cxx} -std=c++23 {OUTSIDE}/holds_mutex.cpp $(pkg-config --cflags --libs {name}) -o main")
        if ("suspends while it holds a pthread mutex" in prefix.run("./main 2>&1")) != reports:
            sys.exit(f"a program of {name} should report a held mutex: {reports}")
    prefix.program(f"{cxx} -std=c++23 {OUTSIDE}/biased.cpp $(pkg-config --cflags --libs pirn-biased-mutex) -o main")
    for plugin in (prefix.folder / "lib/pirn").glob(f"llvm-{cxx.removeprefix('clang++-')}/pirn-plugin.so"):
        known = " ".join(f"-mllvm -pirn-stack-assumptions={path}" for path in (prefix.folder / "lib/pirn").glob("*stack*"))
        prefix.program(f"{cxx} -std=c++23 -O1 -fplugin={plugin} -fpass-plugin={plugin} {known} {OUTSIDE}/bounded.cpp "
                       "$(pkg-config --cflags --libs pirn-bounded pirn-sync) -Wl,-z,now -o main")
    for source, name in (("coroutines.c", "pirn-c"), ("contexts.c", "pirn-c"), ("share_stack.c", "pirn-compat")):
        prefix.program(f"{cc} -std=c99 {OUTSIDE}/{source} $(pkg-config --cflags --libs {name}) -o main")
        prefix.program(f"{cc} -static -std=c99 {OUTSIDE}/{source} $(pkg-config --static --cflags --libs {name}) -o main")
    if (prefix.folder / "lib/pkgconfig/pirn-sim.pc").exists():
        prefix.program(f"{cxx} -std=c++23 -Dmain=run_fibers {OUTSIDE}/fibers.cpp {OUTSIDE}/sim/explored.cpp "
                       "$(pkg-config --cflags --libs pirn-sim) -o main")

    # Elsewhere, and shared.
    moved = Prefix(machine, machine.home / "moved")
    machine.run("mv", prefix.folder, moved.folder)
    moved.share(cxx, layers)
    moved.program(f"{cxx} {by_pkg_config}")
    needed = moved.run("readelf -d main")
    if "libpirn_fiber.so" not in needed:
        sys.exit(f"the program was to use the shared libraries:\n{needed}")
    moved.program(f"{cxx} {by_hand}")

    # Each layer asks for what it lies on, down to the flags that all of them need.
    last = f"pirn-{layers[-1]}"
    for question in ("--cflags", "--libs"):
        whole, layer = (moved.run(f"pkg-config {question} {name}").split() for name in ("pirn", last))
        if whole != layer or (question == "--cflags" and "-fstack-clash-protection" not in whole):
            sys.exit(f"pkg-config {question}: {whole} of pirn, {layer} of {last}")


if __name__ == "__main__":
    main()
