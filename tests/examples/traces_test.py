"""The trace in docs/testing.md is the one that the example prints: traces_test.py DOCS EXAMPLE..."""

import re
import subprocess
import sys
from pathlib import Path


def shown(line: str) -> str:
    """Returns a line without the parts that differ between builds: folders, numbers of steps and of words, and the
    seed."""
    line = re.sub(r"/\S*/", "", re.sub(r" \(\d+ steps\)", "", line))
    return re.sub(r"REPLAY=\S+", "REPLAY=", re.sub(r"word \d+", "word", line)).rstrip()


def main() -> int:
    docs, examples = Path(sys.argv[1]).read_text(), [Path(name) for name in sys.argv[2:]]
    wrong = 0
    for example in examples:
        block = re.search(rf"^```text {example.name}\n(.*?)^```", docs, re.M | re.S)
        if not block:
            print(f"docs/testing.md shows no trace of {example.name}")
            wrong += 1
            continue
        done = subprocess.run([example], capture_output=True, text=True, timeout=100)
        printed = iter([shown(line) for line in done.stdout.splitlines()])
        for line in block.group(1).splitlines():
            if shown(line) not in printed:  # and so in this order
                print(f"{example.name} does not print, or not in this order: {line}\n{done.stdout}{done.stderr}")
                wrong += 1
                break
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
