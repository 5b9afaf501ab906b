"""Shared by the tests that look at machine code. Their arguments are [COMPILER...] and -v, which prints the loops."""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = 77
VERBOSE = "-v" in sys.argv
OBJDUMP = shutil.which("objdump") or shutil.which("llvm-objdump-22")
FORBIDDEN = re.compile(r"\b(call|ret|push|pop|leave|xchg)[a-z]*\b")  # in a loop of switches
SWITCH = re.compile(r"(?:notrack )?jmp[a-z]*\s+\*")
PADDING = re.compile(r"(nop|data16|cs nop|xchg\s+%ax,%ax)")  # before a resume point; never executed


def functions(compiler, options, source, folder):
    """Returns name -> list of (address, instruction) of the machine code of one file."""
    made = Path(folder) / "hot_path.o"
    language = [compiler, "-std=c++20"]
    if Path(source).suffix == ".c":
        language = [compiler.replace("clang++", "clang").replace("g++", "gcc"), "-std=c11"]
    subprocess.run([*language, *options, f"-I{ROOT}/include", "-c", source, "-o", made], check=True)
    listing = subprocess.run([OBJDUMP, "-d", "--no-show-raw-insn", made], check=True, capture_output=True, text=True).stdout
    found, name = {}, None
    for line in listing.splitlines():
        if head := re.match(r"^[0-9a-f]+ <(.+)>:$", line):
            name = head[1]
            found[name] = []
        elif name and (code := re.match(r"^\s+([0-9a-f]+):\s+(.+)$", line)):
            found[name].append((int(code[1], 16), code[2].strip()))
    return found


def loop_of(code, switch=SWITCH, back="j[a-z]+"):
    """Returns the shortest loop of a function that holds a `switch`: from the target of a backward jump, one of `back`,
    to that jump, without padding."""
    loops = []
    for index, (address, text) in enumerate(code):
        jump = re.match(rf"{back}\s+(?:0x)?([0-9a-f]+)\b", text)
        if jump and code[0][0] <= int(jump[1], 16) <= address:
            body = [line for at, line in code[: index + 1] if at >= int(jump[1], 16) and not PADDING.match(line)]
            if any(switch.match(line) for line in body):
                loops.append(body)
    return min(loops, key=len, default=[])


def resumed_inside_a_block(code, block):
    """Returns the resume labels, behind a switch and its padding, that are not at the beginning of a block of `block`
    bytes."""
    found, in_padding = [], False
    for (_, before), (address, text) in zip(code, code[1:]):
        was_in_padding = in_padding
        in_padding = bool(PADDING.match(text) and (in_padding or SWITCH.match(before)))
        if was_in_padding and not in_padding and address % block:
            found.append(f"a resume label at {address:x}")
    return found


def report(fine, text, loop=()):
    """Prints one line, and the loop if it is wanted or wrong. Returns `fine`."""
    print(f"{'ok    ' if fine else 'FAILED'} {text}")
    if VERBOSE or not fine:
        print("\n".join("       " + line for line in loop))
    return bool(fine)


def forbidden(loop):
    """Returns the instructions that a loop must not have."""
    return [line for line in loop if FORBIDDEN.search(line)]


def run(check):
    """Calls `check(compiler, level, folder)` for each compiler at each level; it returns whether all is as it should
    be. Returns the exit status of the test."""
    wanted = [name for name in sys.argv[1:] if name != "-v"] or ["clang++-22", "g++-12"]
    compilers = [name for name in wanted if shutil.which(name)]
    if not OBJDUMP or not compilers:
        print("no compiler or no objdump is installed")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="pirn-hot-") as folder:
        good = [check(compiler, level, folder) for compiler in compilers for level in ("-O2", "-O3")]
    return 0 if all(good) else 1
