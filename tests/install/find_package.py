"""An installed pirn by find_package: the project of outside/, and the block of the README with all warnings as errors."""

import argparse
from pathlib import Path

from user_machine import OUTSIDE, Machine, program_of_the_readme

parser = argparse.ArgumentParser()
for name in ("cc", "cxx", "generator", "sim"):
    parser.add_argument(f"--{name}", required=True)
for name in ("dir", "prefix"):
    parser.add_argument(f"--{name}", type=Path, required=True)
options = parser.parse_args()
machine = Machine(options.dir, options.cc, options.cxx)
common = (f"-DCMAKE_PREFIX_PATH={options.prefix}", f"-DCMAKE_CXX_COMPILER={Path(options.cxx).name}")

build = machine.home / "build"
machine.configure(OUTSIDE, build, *common, f"-DCMAKE_C_COMPILER={Path(options.cc).name}", f"-DWITH_SIM={options.sim}",
                  generator=options.generator)
machine.build(build)
machine.build(build, "--target", "test")

build = machine.home / "build-readme"
machine.configure(program_of_the_readme(machine, "find_package"), build, *common)
machine.build(build)
print(machine.run(build / "server", at=machine.home), end="")
