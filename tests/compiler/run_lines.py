#!/usr/bin/env python3
"""Runs the RUN lines of an .ll file, as lit does: run_lines.py FILE VERSION PLUGIN.

In them %s is the file, %t a file to write, %plugin the plugin, and opt, llc, llvm-link, clang and FileCheck are those
of that version of LLVM. Ends with 77, skipped, where one of them is missing.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def main() -> int:
    source, version, plugin = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    lines = re.findall(r"^;+ *RUN: *(.*)$", source.read_text(), re.MULTILINE)
    if not lines:
        print(f"{source}: no RUN line")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        for line in lines:
            if re.match(r"! [^|;]*\|(?!\|)", line):
                print(f"{source}: the ! stands for the whole pipe, so that FileCheck is not heard: {line}")
                return 1

            def tool(match: re.Match[str]) -> str:
                return match[1] + match[2] + "-" + version

            command = re.sub(r"(^|[|;&!] *)(opt|llc|llvm-link|clang\+\+|clang|FileCheck|llvm-readelf)(?= )", tool, line)
            for missing in (name for name in re.findall(rf"\S+-{version}(?= )", command) if shutil.which(name) is None):
                print(f"skipped: no {missing}")
                return 77
            command = command.replace("%s", str(source)).replace("%t", folder + "/t").replace("%plugin", plugin)
            done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
            if done.returncode != 0:
                print(command, done.stdout, done.stderr, sep="\n")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
