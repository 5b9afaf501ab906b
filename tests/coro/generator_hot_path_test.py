#!/usr/bin/env python3
"""Looks at the machine code of generators' loops: the peer of each side stays in registers, nothing is called, a side
is resumed where a block of 32 bytes begins, a generator that is made where it is iterated is entered by a direct jump,
and the body that for_each inlines gives the vector instructions of the plain loop.

    generator_hot_path_test.py [-v] [COMPILER...]
"""

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "context"))
from disassembly import OBJDUMP, SWITCH, forbidden, functions, loop_of, report, resumed_inside_a_block, run  # noqa: E402

MEMORY = re.compile(r"\(%r")
END_OF_FRAME = "$0x6e656e64,"  # whether a body has overrun its frame: compared at each turn
BLOCK = 32
# Function (a pattern) -> the most instructions of one turn of its loop, by compiler, without the padding behind the
# switch. The switch has 6 of them; 2 of the producer's test whether a body has an open block. gcc inlines a body only
# where it is a local lambda.
LOOPS = {
    r"^sum_of$": {"clang": 9, "g++": 9},
    r"^sum_in_frame$": {"clang": 10, "g++": 10},
    r"producer_entry.*count_down.*guarded_pool": {"clang": 13},
}
VECTOR = re.compile(r"\bv?padd[a-z]*\s+.*%[xyz]mm")


def check_loops(found, what):
    good = True
    for pattern, limits in LOOPS.items():
        most = next((limit for compiler, limit in limits.items() if what.startswith(compiler)), None)
        if most is None:
            continue
        code = next((code for name, code in found.items() if re.search(pattern, name)), [])
        loop = loop_of(code) if code else []
        wrong = forbidden(loop) + resumed_inside_a_block(code, BLOCK)
        memory = [line for line in loop if MEMORY.search(line) and not line.startswith("lea") and END_OF_FRAME not in line]
        spilled = 1 if pattern == r"^sum_in_frame$" and what.startswith("g++") else 0  # where the frame ends
        fine = loop and not wrong and len(loop) <= most and len(memory) <= spilled
        good &= report(fine, f"{what} {pattern}: {len(loop)} instructions, at most {most}; {len(memory)} touch memory; "
                       f"forbidden: {', '.join(wrong) or 'none'}", loop)
    return good


def check_entries(folder, what):
    """Returns whether a generator that is made and iterated in one function is entered by a direct jump."""
    listing = subprocess.run([OBJDUMP, "-dr", "--no-show-raw-insn", Path(folder) / "hot_path.o"], check=True,
                             capture_output=True, text=True).stdout
    good = True
    for name in ("sum_in_frame", "sum_in_pool"):
        code = listing.partition(f"<{name}>:")[2].partition("\n\n")[0]
        direct, indirect = len(re.findall(r"\tjmp .*\n.*R_X86_64_\w+\s.*producer_entry", code)), len(re.findall(r"\tjmp +\*", code))
        good &= report(direct == 1 and indirect == 1,  # the other switch is that of the loop
                       f"{what} {name}: {direct} direct jumps to the body, {indirect} switches through a register")
    return good


def check_for_each(found, what):
    """Returns whether there are as many vector additions as in the plain loop, and no switch."""
    counts = {}
    for name in ("sum_plain", "sum_for_each"):
        counts[name] = sum(bool(VECTOR.search(line)) for _, line in found[name])
    switches = sum(bool(SWITCH.match(line)) for _, line in found["sum_for_each"])
    fine = counts["sum_for_each"] >= counts["sum_plain"] > 0 and not switches
    return report(fine, f"{what} for_each: {counts['sum_for_each']} vector additions, the plain loop {counts['sum_plain']}; "
                  f"{switches} switches")


def check(compiler, level, folder):
    found = functions(compiler, [level, "-fomit-frame-pointer"], HERE / "generator_hot_path.cpp", folder)
    good = check_loops(found, f"{compiler} {level}")
    if compiler.startswith("clang"):
        good &= check_entries(folder, f"{compiler} {level}")
    if level == "-O3":  # gcc 12 vectorises little at -O2
        good &= check_for_each(found, f"{compiler} {level}")
    return good


if __name__ == "__main__":
    sys.exit(run(check))
