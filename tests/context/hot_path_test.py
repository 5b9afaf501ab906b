#!/usr/bin/env python3
"""Checks the machine code of loops of switches: no call, return or push, one jump through a register or memory, a side
is resumed where a block of 16 bytes begins, and no more instructions than when it was measured; over typed
continuations also nothing in memory. Counts by callgrind the instructions, reads and writes of a ping-pong of two
values.

    hot_path_test.py [-v] [COMPILER...]
"""

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from disassembly import ROOT, SWITCH, forbidden, functions, loop_of, report, resumed_inside_a_block, run

HERE = Path(__file__).resolve().parent
BLOCK = 16


@dataclass
class Loop:
    """The most that a loop may have."""

    most: int  # instructions of one turn, with the 7 of the switch of switch_to or the 9 of that of transfer
    memory: int | None = None  # instructions that name memory; None: not checked
    must: str = ""  # pattern that one of them must match


# By file and function. In the loops over continuations a counter may be compared in memory, as gcc does.
LOOPS = {
    "hot_path.cpp": {"switch_loop": Loop(21), "transfer_loop": Loop(22)},
    "hot_path_c.c": {"switch_loop_of_c": Loop(21)},
    "hot_path_continuation.cpp": {
        "two_values_loop": Loop(16, 1),
        "live_over_loop": Loop(16, 1),  # the live value is on the stack once, outside the loop
        "constant_in_loop": Loop(18, 1, r"movabs"),  # loaded again, not kept
        "continuation_runner3run": Loop(15, 0),  # the body, inlined into its caller
    },
}
# Per switch of the ping-pong: instructions, and reads and writes of memory together. One of these reads checks for open
# blocks of bodies.
EXECUTED, ACCESSED = 15.6, 1.6
MEMORY = re.compile(r"^(?!lea|j).*\(")


def look(compiler, level, file, folder):
    """Returns whether the loops of one file are as they should be."""
    found = functions(compiler, [level, "-fomit-frame-pointer"], HERE / file, folder)
    good = True
    for name, expected in LOOPS[file].items():
        codes = [code for function, code in found.items() if name in function]
        bodies = [loop_of(code) for code in codes]
        loop = min((body for body in bodies if body), key=len, default=[])
        wrong = forbidden(loop) + [label for code in codes for label in resumed_inside_a_block(code, BLOCK)]
        jumps = [line for line in loop if SWITCH.match(line)]
        memory = [line for line in loop if MEMORY.match(line)]
        fine = loop and not wrong and len(jumps) == 1 and len(loop) <= expected.most
        fine = fine and (expected.memory is None or len(memory) <= expected.memory)
        fine = fine and (not expected.must or any(re.match(expected.must, line) for line in loop))
        good &= report(fine, f"{compiler} {level} {name}: {len(loop)} instructions, at most {expected.most}; "
                       f"{len(jumps)} indirect jumps; in memory: {len(memory)}; forbidden: {', '.join(wrong) or 'none'}", loop)
    return good


def totals(program, folder, count):
    """Returns (instructions, reads and writes of memory) of the program, by callgrind."""
    output = Path(folder) / "callgrind.out"
    subprocess.run(["valgrind", "--tool=callgrind", "--cache-sim=yes", f"--callgrind-out-file={output}", program, str(count)],
                   check=True, capture_output=True)
    text = output.read_text()
    names = re.search(r"^events: (.*)$", text, re.MULTILINE)[1].split()
    numbers = dict(zip(names, map(int, re.search(r"^(?:summary|totals): (.*)$", text, re.MULTILINE)[1].split())))
    return numbers["Ir"], numbers["Dr"] + numbers["Dw"]


def count(compiler, folder):
    """Returns whether a ping-pong of two values executes no more than it should."""
    program = str(Path(folder) / "ping_pong")
    command = [compiler, "-std=c++20", "-O2", "-fomit-frame-pointer", "-static", f"-I{ROOT}/include"]
    subprocess.run([*command, str(HERE / "hot_path_continuation.cpp"), "-o", program], check=True)
    few, many = totals(program, folder, 1000), totals(program, folder, 21000)
    executed, accessed = ((b - a) / 40000 for a, b in zip(few, many))
    fine = executed <= EXECUTED and accessed <= ACCESSED
    return report(fine, f"{compiler} -O2 executes {executed:.2f} instructions a switch, at most {EXECUTED}, and accesses "
                  f"memory {accessed:.2f} times, at most {ACCESSED}")


def check(compiler, level, folder):
    good = [look(compiler, level, file, folder) for file in LOOPS]
    if level == "-O2" and shutil.which("valgrind"):
        good.append(count(compiler, folder))
    return all(good)


if __name__ == "__main__":
    sys.exit(run(check))
