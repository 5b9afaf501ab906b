"""pirn as a part of a larger project, with gcc alone and without root: by the README's block for FetchContent, and by
add_subdirectory. The larger project gets the libraries that it links, and nothing else of pirn."""

import argparse
import re
import sys
from pathlib import Path

from user_machine import OUTSIDE, ROOT, Machine, blocks_of, program_of_the_readme

OFF = ("PIRN_TESTS", "PIRN_SLOW_TESTS", "PIRN_EXAMPLES", "PIRN_BENCH", "PIRN_PLUGIN", "PIRN_USE_PLUGIN", "PIRN_INSTALL")
INSTALL = "install(TARGETS server)\n"


def check_settings(build: Path) -> None:
    """Nothing that only pirn's own build needs is on, was looked for, or is used."""
    cache = (build / "CMakeCache.txt").read_text()
    for option in OFF:
        if f"{option}:BOOL=OFF" not in cache:
            sys.exit(f"{option} is to be off in a larger project:\n{cache}")
    for word in ("googletest_dir", "Boost_", "LLVM_CONFIG"):
        if word in cache:
            sys.exit(f"the cache of a larger project names {word}:\n{cache}")
    commands = (build / "compile_commands.json").read_text()
    for word in ("clang", "lld"):
        if word in commands:
            sys.exit(f"a larger project that is compiled by gcc names {word}:\n{commands}")


def check_built(machine: Machine, build: Path, file: str, wanted: set[str]) -> None:
    """Building the larger project builds these libraries of pirn."""
    inputs = machine.run("ninja", "-C", build, "-f", file, "-t", "inputs", "all")
    found = set(re.findall(r"libpirn_(\w+)\.", inputs)) | set(re.findall(r"pirn_(\w+)\.dir/", inputs))
    if found != wanted:
        sys.exit(f"of pirn the larger project is to build {sorted(wanted)}, and it builds {sorted(found)}")


def check_installed(machine: Machine, build: Path, *options: str) -> None:
    """The larger project installs its own program."""
    prefix = Path(f"{build}-prefix")
    machine.run("cmake", "--install", build, "--prefix", prefix, *options)
    found = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if path.is_file()}
    if found != {"bin/server"}:
        sys.exit(f"the larger project installs {found}, and is to install its own program alone")


def by_subdirectory(machine: Machine, common: list[str]) -> None:
    """C++20, the context layer, a generator of several configurations."""
    build = machine.home / "build-subdirectory"
    block = blocks_of("README.md", "cmake", "FetchContent_MakeAvailable")
    text = (f'cmake_minimum_required(VERSION 3.25)\nproject(outside LANGUAGES CXX)\nadd_subdirectory("{ROOT}" pirn)\n'
            + block[block.index("add_executable"):].replace("pirn::sync", "pirn::context") + INSTALL)
    project = machine.project("subdirectory", text, OUTSIDE / "contexts.cpp")
    (project / "contexts.cpp").rename(project / "server.cpp")
    machine.configure(project, build, *common, generator="Ninja Multi-Config")
    check_settings(build)
    check_built(machine, build, "build-Release.ninja", {"detail"})
    machine.build(build, "--config", "Release")
    machine.run(build / "Release/server")
    check_installed(machine, build, "--config", "Release")


def by_fetch_content(machine: Machine, common: list[str]) -> None:
    """C++23, fibers, a channel and a generator."""
    build = machine.home / "build"
    machine.configure(program_of_the_readme(machine, "FetchContent_MakeAvailable", INSTALL), build, *common,
                      f"-DFETCHCONTENT_SOURCE_DIR_PIRN={ROOT}", "-DPIRN_PRECOMPILE=ON")
    check_settings(build)
    check_built(machine, build, "build.ninja", {"detail", "stack", "fiber", "sync"})  # those up to sync that have sources
    machine.build(build)
    print(machine.run(build / "server"), end="")
    check_installed(machine, build)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--gcc", required=True)
    parser.add_argument("--gxx", required=True)
    parser.add_argument("--dir", type=Path, required=True)
    options = parser.parse_args()
    machine = Machine(options.dir, options.gcc, options.gxx)
    # CMake looks for programs and packages on PATH, and not in folders of the system that it knows by itself.
    common = [f"-DCMAKE_CXX_COMPILER={Path(options.gxx).name}", "-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF",
              "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"]
    by_subdirectory(machine, common)
    by_fetch_content(machine, common)


if __name__ == "__main__":
    main()
