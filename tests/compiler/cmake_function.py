#!/usr/bin/env python3
"""Builds a small project by pirn_enable_plugin, in folders whose names have spaces.

cmake_function.py VERSION PLUGIN FOLDER, which is that of the function.

Ends with 77, skipped, where that version of clang or lld is missing.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

version, plugin, functions = sys.argv[1:4]

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(small CXX)
if(MADE_HERE)
  add_library(pirn_plugin_@VERSION@ MODULE EXCLUDE_FROM_ALL plugin.cpp)
  set(plugin "${PROJECT_BINARY_DIR}/made here.so")
  add_custom_command(TARGET pirn_plugin_@VERSION@ POST_BUILD BYPRODUCTS "${plugin}"
                     COMMAND "${CMAKE_COMMAND}" -E copy "@PLUGIN@" "${plugin}")
else()
  set(plugin "@PLUGIN@")
endif()
set_property(GLOBAL PROPERTY pirn_plugin_@VERSION@ "${plugin}")
include("@FUNCTIONS@/pirn-enable-plugin.cmake")
add_library(inner OBJECT inner.cpp)
add_executable(outer outer.cpp $<TARGET_OBJECTS:inner>)
foreach(target inner outer)
  target_precompile_headers(${target} PRIVATE <cstddef>)
  pirn_enable_plugin(${target} LIST "my list.txt" REPORT "my reports")
endforeach()
if(ANOTHER_LIST)
  pirn_enable_plugin(outer LIST "another list.txt")
endif()
"""

SUBDIRECTORY = """
cmake_minimum_required(VERSION 3.25)
project(larger CXX C)
set(PIRN_PLUGIN ON)
add_subdirectory("@FUNCTIONS@/.." pirn)
add_executable(outer outer.cpp)
pirn_enable_stack_bounds(outer)
"""


def build(folder: Path, *options: str, target: str = "all") -> subprocess.CompletedProcess[str]:
    shutil.rmtree(folder / "the build", ignore_errors=True)
    configure = ["cmake", "-G", "Ninja", "-S", folder, "-B", folder / "the build", "-DCMAKE_BUILD_TYPE=Release",
                 f"-DCMAKE_CXX_COMPILER=clang++-{version}", *options]
    done = subprocess.run(configure, capture_output=True, text=True)
    if done.returncode == 0:
        make = ["ninja", "-v", "-j1", "-C", folder / "the build", target]
        done = subprocess.run(make, capture_output=True, text=True)
    return done


def write_project(folder: Path, text: str) -> None:
    for name, value in (("VERSION", version), ("PLUGIN", plugin), ("FUNCTIONS", functions)):
        text = text.replace(f"@{name}@", value)
    (folder / "CMakeLists.txt").write_text(text)


def expect(what: object, done: subprocess.CompletedProcess[str]) -> None:
    if not what:
        sys.exit(f"{done.args} ended with {done.returncode}\n{done.stdout}{done.stderr}")


def main() -> int:
    lld = shutil.which(f"ld.lld-{version}")
    if shutil.which(f"clang++-{version}") is None or lld is None or shutil.which("ninja") is None:
        print(f"skipped: no clang++-{version}, no ld.lld-{version}, or no ninja")
        return 77
    with tempfile.TemporaryDirectory() as outside:
        folder = Path(outside) / "of a project"
        folder.mkdir()
        write_project(folder, PROJECT)
        (folder / "my list.txt").write_text("listed()\n")
        (folder / "another list.txt").write_text("main\n")
        (folder / "plugin.cpp").write_text("")
        (folder / "inner.cpp").write_text("void listed() {}\n")
        (folder / "outer.cpp").write_text("void listed();\nint main() { listed(); }\n")

        done = build(folder)
        expect(done.returncode == 0, done)
        expect(b"_Z6listedv.preserve_none" in (folder / "the build/outer").read_bytes(), done)
        reports = sorted(each.name for each in (folder / "the build/my reports").iterdir())
        expect(reports == ["inner", "outer"], done)
        expect("--load-pass-plugin" not in done.stdout, done)

        # Where a flag of the build type says that the linker optimizes, the linker has the plugin too.
        done = build(folder, f"-DCMAKE_CXX_FLAGS_RELEASE=-O2 -flto=full -fuse-ld={lld}")
        expect(done.returncode == 0 and "--load-pass-plugin" in done.stdout, done)

        # Where the project makes the plugin itself, a precompiled header waits for it too.
        for target in ("CMakeFiles/inner.dir/cmake_pch.hxx.pch", "all"):
            done = build(folder, "-DMADE_HERE=1", target=target)
            expect(done.returncode == 0, done)

        done = build(folder, "-DANOTHER_LIST=1")
        expect(done.returncode != 0 and "it has a list already" in done.stderr, done)

        # In a folder of a larger project, the other function is available for all of it.
        write_project(folder, SUBDIRECTORY)
        done = build(folder, target="help")  # lists the possible targets
        expect(done.returncode == 0, done)
    return 0


if __name__ == "__main__":
    sys.exit(main())
