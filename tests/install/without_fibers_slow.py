"""pirn from its sources for a 32-bit processor: the layers up to coroutines and the C libraries, without fibers and without a word
about them on the command line. The README's generator is built with the install."""

import argparse
import re
import sys
from pathlib import Path

from user_machine import ROOT, Machine, blocks_of

parser = argparse.ArgumentParser()
parser.add_argument("--gcc", required=True)
parser.add_argument("--gxx", required=True)
parser.add_argument("--dir", type=Path, required=True)
options = parser.parse_args()
machine = Machine(options.dir, options.gcc, options.gxx)
gcc, gxx = Path(options.gcc).name, Path(options.gxx).name
found = re.findall(r"`cmake ((?:-D\w+=OFF )+)-DCMAKE_CXX_COMPILER=\.\.\.`", (ROOT / "README.md").read_text())
prefix, build = machine.home / "prefix", machine.home / "build"
machine.configure(ROOT, build, *found[0].split(), f"-DCMAKE_C_COMPILER={gcc}", f"-DCMAKE_CXX_COMPILER={gxx}",
                  f"-DCMAKE_INSTALL_PREFIX={prefix}")
machine.build(build)
machine.run("cmake", "--install", build)
libraries = {path.name for path in (prefix / "lib").iterdir()}
if "libpirn_c.so" not in libraries or any("fiber" in name for name in libraries):
    sys.exit(f"a build for 32 bits has the C libraries and no fibers; it has {sorted(libraries)}")

(machine.home / "squares.cpp").write_text(blocks_of("README.md", "cpp", "squares"))
flags = machine.run("pkg-config", "--cflags", "--libs", "pirn-coro", PKG_CONFIG_PATH=prefix / "lib/pkgconfig")
machine.run(f"{gxx} -std=c++20 -O2 -static squares.cpp {flags.strip()} -o squares")
if (shown := machine.run(machine.home / "squares")) != "1\n4\n9\n":
    sys.exit(f"the README's generator prints {shown!r}")
