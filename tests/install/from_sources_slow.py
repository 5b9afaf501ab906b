"""pirn from its sources by the README's line for other compilers: with gcc alone, without root, shared, into a prefix of the
user's own. Then the README's programs, by find_package and by pkg-config. gdb_slow.py uses the prefix and the program too."""

import argparse
import re
import shutil
import sys
from pathlib import Path

from pkg_config import Prefix, lines_of_the_readme
from user_machine import OUTSIDE, ROOT, Machine, program_of_the_readme

parser = argparse.ArgumentParser()
parser.add_argument("--gcc", required=True)
parser.add_argument("--gxx", required=True)
parser.add_argument("--dir", type=Path, required=True)
options = parser.parse_args()
machine = Machine(options.dir, options.gcc, options.gxx)
gxx = Path(options.gxx).name
found = re.findall(r"`cmake ((?:-D\w+=OFF )+)-DCMAKE_CXX_COMPILER=\.\.\.`", (ROOT / "README.md").read_text())
if len(found) != 1:
    sys.exit(f"one line for the libraries alone with another compiler is what the README should have: {found}")

prefix = Prefix(machine, machine.home / "prefix")
build = machine.home / "build"
machine.configure(ROOT, build, *found[0].split(), f"-DCMAKE_CXX_COMPILER={gxx}", "-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF",
                  "-DBUILD_SHARED_LIBS=ON", "-DPIRN_PRECOMPILE=ON", f"-DCMAKE_INSTALL_PREFIX={prefix.folder}")
for word in ("clang", "lld"):
    if word in (build / "compile_commands.json").read_text():
        sys.exit(f"a build by gcc names {word}")
machine.build(build)
machine.run("cmake", "--install", build)

outside = machine.home / "build-outside"
machine.configure(program_of_the_readme(machine, "find_package"), outside, f"-DCMAKE_PREFIX_PATH={prefix.folder}", f"-DCMAKE_CXX_COMPILER={gxx}")
machine.build(outside)
machine.run(outside / "server", at=machine.home)
shutil.copy(OUTSIDE / "program.cpp", machine.home / "main.cpp")
prefix.program(f"{gxx} -g {lines_of_the_readme()[0]} -Wl,-rpath,DIR/lib")
