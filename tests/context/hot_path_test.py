#!/usr/bin/env python3
"""Looks at the machine code of loops of switches: no call, return or push, one jump through a register or memory, and no
more instructions than when it was measured; over typed continuations nothing in memory either. Counts by callgrind what a
ping-pong of two values executes, reads and writes.    hot_path_test.py [COMPILER...]

    -v prints the loops
"""

import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SKIPPED = 77


@dataclass
class Loop:
    """What a loop may have at most."""

    most: int  # instructions of one turn, all told; of which 8 are the switch of switch_to and 10 that of transfer
    memory: int | None = None  # instructions that name memory; None: not looked at
    must: str = ""  # what one of them must be


# By file and function. In the loops over continuations a counter may be compared in memory, as gcc does.
LOOPS = {
    "hot_path.cpp": {"switch_loop": Loop(22), "transfer_loop": Loop(23)},
    "hot_path_continuation.cpp": {
        "two_values_loop": Loop(17, 1),
        "live_over_loop": Loop(17, 1),  # the live value is on the stack once, outside the loop
        "constant_in_loop": Loop(19, 1, r"movabs"),  # made anew, not kept
        "continuation_runner3run": Loop(16, 0),  # the body, inlined into what calls it
    },
}
# Per switch of the ping-pong: instructions, and reads and writes of memory together.
EXECUTED, ACCESSED = 15.6, 0.6
FORBIDDEN = re.compile(r"\b(call|ret|push|pop|leave|xchg)[a-z]*\b")


SWITCH = re.compile(r"jmp[a-z]*\s+\*")
MEMORY = re.compile(r"^(?!lea|nop|data16|cs nop|j|xchg %ax,%ax).*\(")


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


def look(compiler, level, file, folder, objdump, verbose):
    """Whether the loops of one file are as they should be."""
    target = str(Path(folder) / "hot_path.o")
    command = [compiler, "-std=c++20", level, "-fomit-frame-pointer", f"-I{ROOT}/include", "-c"]
    subprocess.run([*command, str(HERE / file), "-o", target], check=True)
    listing = subprocess.run(
        [objdump, "-d", "--no-show-raw-insn", target], check=True, capture_output=True, text=True
    ).stdout
    found = functions(listing)
    good = True
    for name, expected in LOOPS[file].items():
        bodies = [loop_of(code) for function, code in found.items() if name in function]
        loop = min((body for body in bodies if body), key=len, default=[])
        wrong = [line for line in loop if FORBIDDEN.search(line)]
        jumps = [line for line in loop if SWITCH.match(line)]
        memory = [line for line in loop if MEMORY.match(line)]
        fine = loop and not wrong and len(jumps) == 1 and len(loop) <= expected.most
        fine = fine and (expected.memory is None or len(memory) <= expected.memory)
        fine = fine and (not expected.must or any(re.match(expected.must, line) for line in loop))
        good = good and bool(fine)
        print(f"{'ok    ' if fine else 'FAILED'} {compiler} {level} {name}: {len(loop)} instructions, "
              f"at most {expected.most}; {len(jumps)} indirect jumps; in memory: {len(memory)}; "
              f"forbidden: {', '.join(wrong) or 'none'}")
        if verbose or not fine:
            print("\n".join("       " + line for line in loop))
    return good


def totals(program, folder, count):
    """(instructions, reads and writes of memory) of the program, by callgrind."""
    output = Path(folder) / "callgrind.out"
    subprocess.run(["valgrind", "--tool=callgrind", "--cache-sim=yes", f"--callgrind-out-file={output}", program, str(count)],
                   check=True, capture_output=True)
    text = output.read_text()
    names = re.search(r"^events: (.*)$", text, re.MULTILINE)[1].split()
    numbers = dict(zip(names, map(int, re.search(r"^(?:summary|totals): (.*)$", text, re.MULTILINE)[1].split())))
    return numbers["Ir"], numbers["Dr"] + numbers["Dw"]


def count(compiler, folder):
    """Whether a ping-pong of two values executes no more than it should."""
    program = str(Path(folder) / "ping_pong")
    command = [compiler, "-std=c++20", "-O2", "-fomit-frame-pointer", "-static", f"-I{ROOT}/include"]
    subprocess.run([*command, str(HERE / "hot_path_continuation.cpp"), "-o", program], check=True)
    few, many = totals(program, folder, 1000), totals(program, folder, 21000)
    executed, accessed = ((b - a) / 40000 for a, b in zip(few, many))
    fine = executed <= EXECUTED and accessed <= ACCESSED
    print(f"{'ok    ' if fine else 'FAILED'} {compiler} -O2 executes {executed:.2f} instructions a switch, at most "
          f"{EXECUTED}, and accesses memory {accessed:.2f} times, at most {ACCESSED}")
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
                for file in LOOPS:
                    good = look(compiler, level, file, folder, objdump, verbose) and good
            if shutil.which("valgrind"):
                good = count(compiler, folder) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
