#!/usr/bin/env python3
"""Looks for the messages that refused.cpp expects: bounded_refused.py SOURCE WHAT COMMAND...

WHAT is one of the parts of the source. The command compiles or links it and must fail.
"""

import re
import subprocess
import sys
from pathlib import Path


def main() -> int:
    source, what, command = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    text = source.read_text()
    parts = list(re.finditer(r"^#(?:if|elif|else|endif)\b.*$", text, re.MULTILINE))
    begin, end = parts[what - 1].end(), parts[what].start()
    expected = []
    for each in re.finditer(r"// expect: (.*)", text[begin:end]):
        # The plugin's errors are at the line of the spawn, which is the next one.
        line = text.count("\n", 0, begin + each.start()) + 2
        where = rf"refused\.cpp:{line}:\d+: error: .*" if what == 1 else ""
        expected.append(where + each[1])
    done = subprocess.run(command, capture_output=True, text=True)
    missing = [each for each in expected if not re.search(each, done.stderr)]
    if done.returncode == 0 or not expected or missing:
        print("ended with", done.returncode, "without:", *missing, done.stderr, sep="\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
