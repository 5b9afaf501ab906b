"""pirn from its sources for another processor. On one of 32 bits it has no fibers: the layers up to coroutines and the C
libraries, without a word about fibers on the command line. Programs are built with the install and run, in an emulator if
there is one: the README's generator, coroutines and contexts in C, a program on aco.h, shared and static."""

import argparse
import re
import shutil
import sys
from pathlib import Path

from user_machine import OUTSIDE, ROOT, Machine, blocks_of

parser = argparse.ArgumentParser()
parser.add_argument("--gcc", required=True)
parser.add_argument("--gxx", required=True)
parser.add_argument("--dir", type=Path, required=True)
parser.add_argument("--processor", default="", help="as CMake names it, where programs for it need the emulator")
parser.add_argument("--emulator", default="", help="the command before a program's name")
parser.add_argument("--fibers", action="store_true", help="it has fibers")
options = parser.parse_args()
machine = Machine(options.dir, options.gcc, options.gxx)
gcc, gxx = Path(options.gcc).name, Path(options.gxx).name
found = re.findall(r"`cmake ((?:-D\w+=OFF )+)-DCMAKE_CXX_COMPILER=\.\.\.`", (ROOT / "README.md").read_text())
prefix, build = machine.home / "prefix", machine.home / "build"
cross = ["-DCMAKE_SYSTEM_NAME=Linux", f"-DCMAKE_SYSTEM_PROCESSOR={options.processor}"] if options.processor else []
machine.configure(ROOT, build, *found[0].split(), f"-DCMAKE_C_COMPILER={gcc}", f"-DCMAKE_CXX_COMPILER={gxx}",
                  f"-DCMAKE_INSTALL_PREFIX={prefix}", *cross)
machine.build(build)
machine.run("cmake", "--install", build)
libraries = {path.name for path in (prefix / "lib").iterdir()}
if not {"libpirn_c.so", "libpirn_compat.so"} <= libraries or any("fiber" in name for name in libraries) != options.fibers:
    expected = "fibers" if options.fibers else "no fibers"
    sys.exit(f"such a build has the C libraries, aco.h's and {expected}; it has {sorted(libraries)}")


def shown_by(compiler: str, source: str, package: str) -> str:
    """Returns the output of a program that is compiled and linked by the flags of a package."""
    static = "-static" in compiler
    flags = machine.run("pkg-config", *(["--static"] if static else []), "--cflags", "--libs", package,
                        PKG_CONFIG_PATH=prefix / "lib/pkgconfig").strip()
    machine.run(f"{compiler} {source} {flags} -o program")
    return machine.run(f"{options.emulator} ./program", LD_LIBRARY_PATH=prefix / "lib")


(machine.home / "squares.cpp").write_text(blocks_of("README.md", "cpp", "squares"))
if (shown := shown_by(f"{gxx} -std=c++20 -O2 -static", "squares.cpp", "pirn-coro")) != "1\n4\n9\n":
    sys.exit(f"the README's generator prints {shown!r}")
for source, package in (("coroutines.c", "pirn-c"), ("contexts.c", "pirn-c"), ("share_stack.c", "pirn-compat")):
    shutil.copy(OUTSIDE / source, machine.home)
    for how in ("", "-static"):
        shown_by(f"{gcc} -std=c11 -O2 {how}", source, package)
