#!/usr/bin/env python3
"""Looks at the machine code of a loop of switches: no call, return or push, one jump through a register or memory,
and no more instructions than it had when it was measured.    hot_path_test.py [COMPILER...]

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
# Instructions of one turn of the loop, all told: 8 of them are the switch of switch_to, 10 that of transfer; the rest
# moves messages and the loop's own values.
MOST = {"switch_loop": 22, "transfer_loop": 23}
FORBIDDEN = re.compile(r"\b(call|ret|push|pop|leave|xchg)[a-z]*\b")


SWITCH = re.compile(r"jmp[a-z]*\s+\*")


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
                subprocess.run([*command, str(HERE / "hot_path.cpp"), "-o", target], check=True)
                listing = subprocess.run(
                    [objdump, "-d", "--no-show-raw-insn", target], check=True, capture_output=True, text=True
                ).stdout
                for name, most in MOST.items():
                    loop = loop_of(functions(listing).get(name, []))
                    wrong = [line for line in loop if FORBIDDEN.search(line)]
                    jumps = [line for line in loop if SWITCH.match(line)]
                    fine = loop and not wrong and len(jumps) == 1 and len(loop) <= most
                    good = good and bool(fine)
                    print(f"{'ok    ' if fine else 'FAILED'} {compiler} {level} {name}: {len(loop)} instructions, "
                          f"at most {most}; {len(jumps)} indirect jumps; forbidden: {', '.join(wrong) or 'none'}")
                    if verbose or not fine:
                        print("\n".join("       " + line for line in loop))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
