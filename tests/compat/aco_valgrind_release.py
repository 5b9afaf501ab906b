#!/usr/bin/env python3
"""Builds aco.cpp with the options of the preset `release` and runs aco_alone.c on it in valgrind.

    aco_valgrind_release.py VALGRIND
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def variables(presets, name):
    """Returns the variables that a preset sets, and those that it inherits."""
    preset = presets[name]
    inherited = variables(presets, preset["inherits"]) if "inherits" in preset else {}
    return {**inherited, **preset.get("cacheVariables", {})}


def main():
    presets = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
    release = variables({preset["name"]: preset for preset in presets}, "release")
    compiler = [release["CMAKE_CXX_COMPILER"], *release["CMAKE_CXX_FLAGS_RELEASE"].split(), "-D_GNU_SOURCE",
                *(f"-I{ROOT / name}" for name in ("include", "src", "compat"))]
    with tempfile.TemporaryDirectory(prefix="pirn-aco-") as folder:
        library, program = f"{folder}/aco.o", f"{folder}/alone"
        for command in (
            [*compiler, "-std=c++20", "-c", str(ROOT / "src/compat/aco.cpp"), "-o", library],
            [*compiler, "-DACO_USE_VALGRIND", "-x", "c++", str(ROOT / "tests/compat/aco_alone.c"), "-x", "none", library,
             *release["CMAKE_EXE_LINKER_FLAGS"].split(), "-o", program, "-pthread"],
            [sys.argv[1], "-q", "--leak-check=full", "--error-exitcode=1", program],
        ):
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
            if done.returncode != 0:
                print(f"{' '.join(command)}\n{done.stdout[-3000:]}")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
