#!/usr/bin/env python3
"""Counts what pirn's switch and a classic one execute and store on each instruction set, and compares the table in
docs/abi.md with that. With --write the table is made anew.

The classic switch is a function that stores the registers which a call preserves; its call is counted with it. Neither
count has what the compiler saves around the switch: with pirn's those of all values that are needed afterwards, with
the classic one those in registers that a call does not preserve.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "abi.md"
SKIPPED = 77
# The compiler of each instruction set, and the bytes that an instruction stores: the first pattern that matches counts.
STORES = {"x86-64": [(r"push", 8), (r"movq?\s+%\w+,.*\(", 8)],
          "i386": [(r"push|call", 4), (r"movl?\s+(%\w+|\$\w+),.*\(", 4)],
          "AArch64": [(r"stp", 16), (r"str", 8)],
          "RISC-V 64": [(r"f?sd|c\.f?sd", 8)],
          "PowerPC64 LE": [(r"stvx", 16), (r"stdu?|stfd", 8), (r"stw", 4)]}
COMPILERS = {"x86-64": "gcc-12", "i386": "i686-linux-gnu-gcc", "AArch64": "aarch64-linux-gnu-gcc",
             "RISC-V 64": "riscv64-linux-gnu-gcc", "PowerPC64 LE": "powerpc64le-linux-gnu-gcc"}
PADDING = re.compile(r"(c\.)?nop|data16|cs nop|xchg\s+%ax,%ax|\.\.\.")
HEADING = "| | classic: instructions | bytes stored | pirn: instructions | bytes stored |"


def bytes_stored(isa, code):
    return sum(next((size for pattern, size in STORES[isa] if re.match(pattern, text)), 0) for text in code)


def counted(isa, compiler, folder):
    """Returns (instructions, bytes stored) of the classic switch with its call, and of pirn's."""
    made = Path(folder) / "saved.o"
    subprocess.run([compiler, "-std=c11", "-O2", "-fno-pie", f"-I{ROOT}/include", "-c", str(HERE / "saved.c"), "-o", str(made)],
                   check=True)
    objdump = compiler.replace("gcc-12", "objdump").replace("gcc", "objdump")
    listing = subprocess.run([objdump, "-d", "--no-show-raw-insn", str(made)], check=True, capture_output=True, text=True).stdout
    code = {}
    for line in listing.splitlines():
        if head := re.match(r"^[0-9a-f]+ <(.+)>:$", line):
            name = head[1]
            code[name] = []
        elif text := re.match(r"^\s+[0-9a-f]+:\s+(.+)$", line):
            if not PADDING.match(text[1].strip()):
                code[name].append(text[1].strip())
    # On x86 a call stores the return address.
    call = 1, {"x86-64": 8, "i386": 4}.get(isa, 0)
    classic, ours = code["classic_switch_begin"], code["pirn_switch_begin"]
    return ((len(classic) + call[0], bytes_stored(isa, classic) + call[1]), (len(ours), bytes_stored(isa, ours)))


def table():
    """Returns the lines of the table, and the compilers that are missing."""
    missing = [compiler for compiler in COMPILERS.values() if not shutil.which(compiler)]
    lines = [HEADING, "|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory(prefix="pirn-saved-") as folder:
        for isa, compiler in COMPILERS.items():
            if compiler not in missing:
                classic, ours = counted(isa, compiler, folder)
                lines.append(f"| {isa} | {classic[0]} | {classic[1]} | {ours[0]} | {ours[1]} |")
    return lines, missing


def main():
    lines, missing = table()
    page = PAGE.read_text()
    begin = page.index(HEADING)
    end = page.index("\n\n", begin)
    kept = page[begin:end].split("\n")
    if "--write" in sys.argv:
        PAGE.write_text(page[:begin] + "\n".join(lines) + page[end:])
        return 0
    print("\n".join(lines))
    for compiler in missing:
        print(f"skipped: {compiler} is not installed")
    wrong = [line for line in lines if line not in kept]
    for line in wrong:
        print(f"FAILED docs/abi.md has no line: {line}")
    if len(kept) > len(lines) and not missing:
        print("FAILED docs/abi.md has more lines")
        return 1
    return 1 if wrong else SKIPPED if len(lines) == 2 else 0


if __name__ == "__main__":
    sys.exit(main())
