"""Uses an installed pirn without CMake: programs built by the lines of the README, static, shared, and after the
installation was moved."""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
OUTSIDE = HERE / "outside"


def run(command: str, folder: Path, prefix: Path) -> str:
    """Runs a line of shell in a folder, with the installation where pkg-config and the loader look for it."""
    known = dict(os.environ, PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"), LD_LIBRARY_PATH=str(prefix / "lib"))
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=known, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{command}\n{done.stdout}\nended with {done.returncode}, and the install in {prefix}")
    return done.stdout


def lines_of_the_readme() -> tuple[str, str]:
    """Returns the lines of the README that build main.cpp: with pkg-config, and without."""
    lines = re.findall(r"^\w+\+\+\S* (.*\bmain\.cpp\b.*?)(?: *#.*)?$", (HERE.parents[1] / "README.md").read_text(), re.M)
    found = [line for line in lines if "pkg-config" in line], [line for line in lines if "pkg-config" not in line]
    if len(found[0]) != 1 or len(found[1]) != 1:
        sys.exit(f"one line with pkg-config and one without is what the README should have: {found}")
    return found[0][0], found[1][0]


def share(options: argparse.Namespace, prefix: Path) -> None:
    """Makes the files that BUILD_SHARED_LIBS=ON would have installed out of the static libraries."""
    left = []
    for layer in options.layers:
        archive = prefix / f"lib/libpirn_{layer}.a"
        if not archive.exists():
            continue  # has headers only
        shared = archive.with_suffix(".so")
        run(f"{options.cxx} -shared -Wl,--whole-archive {archive} -Wl,--no-whole-archive {' '.join(left)} "
            f"-Wl,-soname,{shared.name} -o {shared}", prefix, prefix)
        archive.unlink()
        left.insert(0, str(shared))


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("cmake", "build", "dir", "cc", "cxx", "layers"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    options.layers = options.layers.split(",")
    folder = Path(options.dir)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    prefix = folder / "prefix"
    run(f"{options.cmake} --install {options.build} --prefix {prefix}", folder, prefix)
    shutil.copy(OUTSIDE / "fibers.cpp", folder / "main.cpp")

    def program(line: str, at: Path) -> None:
        (folder / "main").unlink(missing_ok=True)
        run(f"{line.replace('DIR/', str(at) + '/')} && ./main", folder, at)

    # Static: all of pirn, single layers, and the libraries for C.
    by_pkg_config, by_hand = lines_of_the_readme()
    program(f"{options.cxx} {by_pkg_config}", prefix)
    program(f"{options.cxx} -std=c++20 {OUTSIDE}/contexts.cpp $(pkg-config --cflags --libs pirn-context) -o main", prefix)
    for source, name in (("coroutines.c", "pirn-c"), ("share_stack.c", "pirn-compat")):
        program(f"{options.cc} -std=c99 {OUTSIDE}/{source} $(pkg-config --cflags --libs {name}) -o main", prefix)
        program(f"{options.cc} -static -std=c99 {OUTSIDE}/{source} $(pkg-config --static --cflags --libs {name}) -o main", prefix)
    if (prefix / "lib/pkgconfig/pirn-sim.pc").exists():
        program(f"{options.cxx} -std=c++23 -Dmain=run_fibers {OUTSIDE}/fibers.cpp {OUTSIDE}/sim/explored.cpp "
                "$(pkg-config --cflags --libs pirn-sim) -o main", prefix)

    # In another place, and shared.
    moved = folder / "moved"
    prefix.rename(moved)
    share(options, moved)
    program(f"{options.cxx} {by_pkg_config}", moved)
    needed = run("readelf -d main", folder, moved)
    if "libpirn_fiber.so" not in needed:
        sys.exit(f"the program was to use the shared libraries:\n{needed}")
    program(f"{options.cxx} {by_hand}", moved)

    # Each layer requires the layer below, down to the flags that all of them need.
    last = f"pirn-{options.layers[-1]}"
    for question in ("--cflags", "--libs"):
        whole, layer = (run(f"pkg-config {question} {name}", folder, moved).split() for name in ("pirn", last))
        if whole != layer or (question == "--cflags" and "-fstack-clash-protection" not in whole):
            sys.exit(f"pkg-config {question}: {whole} of pirn, {layer} of {last}")


if __name__ == "__main__":
    main()
