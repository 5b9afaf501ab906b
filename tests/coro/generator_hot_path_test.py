#!/usr/bin/env python3
"""Looks at the machine code of generators' loops: the peer of each side stays in registers, nothing is called, and the
body that for_each inlines gives the vector instructions of the plain loop.    generator_hot_path_test.py [COMPILER...]

    -v prints the loops
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SKIPPED = 77
FORBIDDEN = re.compile(r"\b(call|ret|push|pop|leave|xchg)[a-z]*\b")
SWITCH = re.compile(r"(?:notrack )?jmp[a-z]*\s+\*")
MEMORY = re.compile(r"\(%r")
# Function (a pattern) -> the most instructions of one turn of its loop, by compiler. The switch is 6 of them, the nop
# behind it 1. gcc inlines a body only where it is a local lambda.
LOOPS = {
    r"^sum_of$": {"clang": 10, "g++": 10},
    r"^sum_in_frame$": {"clang": 11, "g++": 10},
    r"generator_entry.*count_down.*guarded_pool": {"clang": 14},
}
VECTOR = re.compile(r"\bv?padd[a-z]*\s+.*%[xyz]mm")


def functions(listing):
    """name -> list of (address, instruction) of a disassembly."""
    found, name = {}, None
    for line in listing.splitlines():
        if head := re.match(r"^[0-9a-f]+ <(.+)>:$", line):
            name = head[1]
            found[name] = []
        elif name and (code := re.match(r"^\s+([0-9a-f]+):\s+(.+)$", line)):
            found[name].append((int(code[1], 16), code[2].strip()))
    return found


def loop_of(code):
    """The shortest loop that holds a switch: from the target of a backward jump to that jump."""
    loops = []
    for index, (address, text) in enumerate(code):
        jump = re.match(r"j[a-z]+\s+(?:0x)?([0-9a-f]+)\b", text)
        if jump and int(jump[1], 16) <= address:
            body = [line for at, line in code[: index + 1] if at >= int(jump[1], 16)]
            if any(SWITCH.match(line) for line in body):
                loops.append(body)
    return min(loops, key=len, default=[])


def check_loops(found, what, verbose):
    good = True
    for pattern, limits in LOOPS.items():
        most = next((limit for compiler, limit in limits.items() if what.startswith(compiler)), None)
        if most is None:
            continue
        loop = next((loop_of(code) for name, code in found.items() if re.search(pattern, name)), [])
        wrong = [line for line in loop if FORBIDDEN.search(line)]
        memory = [line for line in loop if MEMORY.search(line) and not line.startswith("lea")]
        fine = bool(loop) and not wrong and len(loop) <= most and not memory
        good = good and fine
        print(f"{'ok    ' if fine else 'FAILED'} {what} {pattern}: {len(loop)} instructions, at most {most}; {len(memory)} "
              f"touch memory; forbidden: {', '.join(wrong) or 'none'}")
        if verbose or not fine:
            print("\n".join("       " + line for line in loop))
    return good


def check_for_each(found, what):
    """As many vector additions as the plain loop, and no switch."""
    counts = {}
    for name in ("sum_plain", "sum_for_each"):
        counts[name] = sum(bool(VECTOR.search(line)) for _, line in found[name])
    switches = sum(bool(SWITCH.match(line)) for _, line in found["sum_for_each"])
    fine = counts["sum_for_each"] >= counts["sum_plain"] > 0 and not switches
    print(f"{'ok    ' if fine else 'FAILED'} {what} for_each: {counts['sum_for_each']} vector additions, the plain loop "
          f"{counts['sum_plain']}; {switches} switches")
    return fine


def main():
    verbose = "-v" in sys.argv
    compilers = [name for name in sys.argv[1:] if name != "-v"] or ["clang++-22", "g++-12"]
    objdump = shutil.which("objdump") or shutil.which("llvm-objdump-22")
    compilers = [name for name in compilers if shutil.which(name)]
    if not objdump or not compilers:
        print("no compiler or no objdump is installed")
        return SKIPPED
    good = True
    with tempfile.TemporaryDirectory(prefix="pirn-hot-") as folder:
        for compiler in compilers:
            for level in ("-O2", "-O3"):
                target = str(Path(folder) / "hot_path.o")
                command = [compiler, "-std=c++20", level, "-fomit-frame-pointer", f"-I{ROOT}/include", "-c"]
                subprocess.run([*command, str(HERE / "generator_hot_path.cpp"), "-o", target], check=True)
                listing = subprocess.run(
                    [objdump, "-d", "--no-show-raw-insn", target], check=True, capture_output=True, text=True
                ).stdout
                found = functions(listing)
                good = check_loops(found, f"{compiler} {level}", verbose) and good
                if level == "-O3":  # gcc 12 vectorises little at -O2
                    good = check_for_each(found, f"{compiler} {level}") and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
