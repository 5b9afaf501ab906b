"""A shared library as from_sources_slow.py has installed it: gdb finds the commands for fibers where it is configured to
trust that prefix."""

import argparse
import subprocess
import sys
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--gdb", required=True)
parser.add_argument("--home", type=Path, required=True)
options = parser.parse_args()
found = options.home / "prefix/share/gdb/auto-load"
shown = subprocess.run([options.gdb, "-q", "-batch", "-nx", "-iex", f"set auto-load safe-path {found}", "-iex",
                        f"set auto-load scripts-directory {found}", "-ex", "break main", "-ex", "run", "-ex", "help pirn",
                        options.home / "main"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
if "Could not trace the inferior" in shown or "Operation not permitted" in shown:
    print("this machine does not allow gdb to trace a program")
    sys.exit(77)
if "pirn fibers" not in shown or "Undefined command" in shown:
    sys.exit(f"gdb has not found the script:\n{shown}")
print("found")
