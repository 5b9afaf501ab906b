#!/usr/bin/env python3
"""Probes the calling convention of functions that switch, by each compiler that is installed and, for AArch64, by its
cross compilers and an emulator: the switches deliver arguments in the registers of that convention, and objects of two
compilers that link agree about it."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SKIPPED = 77
AARCH64 = "aarch64-linux-gnu"
# preserve_none began with clang 19, and with gcc 15 on x86-64 and gcc 16 on AArch64. Earlier ones show that they have
# none.
COMPILERS = [f"clang++-{version}" for version in range(19, 31)] + [f"g++-{version}" for version in range(12, 26)]


def probes():
    """Yields the command that compiles the probe and the one that runs it, in front of the program."""
    for compiler in filter(shutil.which, COMPILERS):
        yield [compiler], []
    emulator = "qemu-aarch64-static"
    if not shutil.which(emulator) or not shutil.which(f"{AARCH64}-g++"):
        print(f"skipped: AArch64 needs {AARCH64}-g++ and {emulator}")
        return
    for compiler in filter(shutil.which, COMPILERS):
        if compiler.startswith("clang"):
            yield [compiler, f"--target={AARCH64}"], [emulator, "-L", f"/usr/{AARCH64}"]
    for compiler in filter(shutil.which, [f"{AARCH64}-g++", *(f"{AARCH64}-{name}" for name in COMPILERS)]):
        yield [compiler], [emulator, "-L", f"/usr/{AARCH64}"]


def main():
    probed = failures = 0
    with tempfile.TemporaryDirectory(prefix="pirn-convention-") as folder:
        program = Path(folder) / "convention"
        for compiler, emulator in probes():
            title = " ".join(compiler)
            built = subprocess.run([*compiler, "-std=c++20", "-O2", "-fomit-frame-pointer", f"-I{ROOT}/include",
                                    str(HERE / "convention.cpp"), "-o", str(program)], capture_output=True, text=True)
            if built.returncode:
                failures += 1
                print(f"FAILED {title}\n{built.stderr[:1500]}")
                continue
            done = subprocess.run([*emulator, str(program)], capture_output=True, text=True, timeout=60)
            print(f"{title}: {done.stdout.strip()}", flush=True)
            probed += "has none" not in done.stdout
            failures += done.returncode != 0
    return failures != 0 if probed or failures else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
