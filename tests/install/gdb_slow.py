"""An installed shared library: gdb finds the commands for fibers without help where it is configured to trust that
prefix."""

import argparse
import subprocess
import sys
from pathlib import Path

PROGRAM = """#include "pirn/fiber/runtime.hpp"
int main() { return pirn::runtime().run([] { return 0; }); }
"""

parser = argparse.ArgumentParser()
for name in ("cmake", "cxx", "gdb"):
    parser.add_argument(f"--{name}", required=True)
for name in ("dir", "source"):
    parser.add_argument(f"--{name}", type=Path, required=True)
options = parser.parse_args()
build, prefix = options.dir / "build", options.dir / "prefix"


def run(*command, **more) -> str:
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, **more)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


run(options.cmake, "-G", "Ninja", "-S", options.source, "-B", build, f"-DCMAKE_CXX_COMPILER={options.cxx}", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
    "-DBUILD_SHARED_LIBS=ON", "-DPIRN_TESTS=OFF", "-DPIRN_EXAMPLES=OFF", "-DPIRN_EXPLORE=OFF", "-DPIRN_PLUGIN=OFF",
    f"-DCMAKE_INSTALL_PREFIX={prefix}")
run(options.cmake, "--build", build)
run(options.cmake, "--install", build)
(options.dir / "main.cpp").write_text(PROGRAM)
program = options.dir / "program"
flags = run("pkg-config", "--cflags", "--libs", "pirn-fiber", env={"PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig"), "PATH": "/usr/bin:/bin"})
run(options.cxx, "-std=c++2b", "-g", options.dir / "main.cpp", *flags.split(), f"-Wl,-rpath,{prefix / 'lib'}", "-o", program)

found = prefix / "share/gdb/auto-load"
shown = run(options.gdb, "-q", "-batch", "-nx", "-iex", f"set auto-load safe-path {found}", "-iex", f"set auto-load scripts-directory {found}",
            "-ex", "break main", "-ex", "run", "-ex", "help pirn", program)
if "Could not trace the inferior" in shown or "Operation not permitted" in shown:
    print("this machine does not allow gdb to trace a program")
    sys.exit(77)
if "pirn fibers" not in shown or "Undefined command" in shown:
    sys.exit(f"gdb has not found the script:\n{shown}")
print("found")
