#!/usr/bin/env python3
"""Compiles programs with and without the plugin and compares their behaviour: propagation_programs.py quick|slow
VERSION PLUGIN.

Ends with 77, skipped, where that version of clang or lld is missing.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

here = Path(__file__).parent / "propagation"
kind, version, plugin = sys.argv[1:4]
compiler = "clang++-" + version
loaded = [f"-fplugin={plugin}", f"-fpass-plugin={plugin}"]


def run(*command: object, fails: bool = False) -> str:
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True)
    if (done.returncode != 0) != fails:
        sys.exit(f"{' '.join(map(str, command))}\nended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def expect(what: bool, message: str) -> None:
    if not what:
        sys.exit(message)


def compile_to(target: Path, source: str, *options: object) -> Path:
    run(compiler, "-std=c++20", *options, "-c", here / source, "-o", target)
    return target


def decisions(report: Path) -> dict[str, bool]:
    return {each["function"]: each["propagated"] for each in json.loads(report.read_text())["functions"]}


class Program:
    """The program of many shapes, its output when the plugin has no part in it, and its object without the plugin."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.start = compile_to(folder / "switch.o", "switch.cpp", "-O1", "-fPIC")
        plain = compile_to(folder / "plain.o", "program.cpp", "-O0")
        self.said = self.link(plain)

    def link(self, *arguments: object) -> str:
        run(compiler, self.start, *arguments, "-o", self.folder / "program")
        return run(self.folder / "program")

    def check(self, what: str, *arguments: object) -> None:
        said = self.link(*arguments)
        expect(said == self.said, f"{what}: {said!r} instead of {self.said!r}")


def optimized(program: Program, *options: str) -> None:
    report = program.folder / "report.json"
    text = run(compiler, "-std=c++20", "-O2", *options, *loaded, "-mllvm", f"-pirn-report={report}", "-Rpass=pirn",
               "-Rpass-missed=pirn", "-c", here / "program.cpp", "-o", program.folder / "program.o")
    program.check(f"-O2 {options}", program.folder / "program.o")
    decided = decisions(report)
    for name in ("bottom(long, long, long)", "middle(long, long)", "ten(long, long, long, long, long, long, long, long, long, "
                 "long)", "rethrows(long)", "throws(long)", "recursive(long)"):
        expect(decided[name], f"{name} is left alone")
    for name in ("variable(int, ...)", "by_address(long)", "below_both(long)", "run(long)", "square::area(long) const"):
        expect(not decided[name], f"{name} has the convention")
    line = 1 + next(i for i, each in enumerate((here / "program.cpp").read_text().split("\n")) if "bottom(long a" in each)
    expect(f"program.cpp:{line}:" in text and "'bottom(long, long, long)' no longer preserves registers" in text,
           f"no remark of bottom() with its line {line}:\n{text}")
    expect("'by_address(long)' still preserves registers, though it may switch: its address is taken" in text, text)


def linked_whole(program: Program, kind_of_lto: str, *options: str) -> None:
    folder = program.folder / kind_of_lto
    folder.mkdir()
    for source in ("program.cpp", "switch.cpp"):
        compile_to(folder / (source + ".o"), source, "-O2", f"-flto={kind_of_lto}", *loaded, "-mllvm",
                   f"-pirn-report={folder}/report", *options)
    run(compiler, "-O2", f"-flto={kind_of_lto}", f"-fuse-ld={shutil.which('ld.lld-' + version)}", *folder.glob("*.o"), "-o",
        folder / "program", f"-Wl,--load-pass-plugin={plugin}")
    said = run(folder / "program")
    expect(said == program.said, f"-flto={kind_of_lto}: {said!r} instead of {program.said!r}")
    decided = {}
    for each in (folder / "report").iterdir():
        decided |= decisions(each)
    expect(decided["bottom(long, long, long)"], f"-flto={kind_of_lto}: bottom() is left alone")
    # It is called from the other file.
    expect(decided["run(long)"] == (kind_of_lto == "full"), f"-flto={kind_of_lto}: run() should not be as it is")


def listed(folder: Path) -> None:
    switch = compile_to(folder / "switch_only.o", "switch.cpp", "-O1")
    objects = {}
    for name in ("list_caller", "list_callee"):
        for what, options in (("with", [*loaded, "-mllvm", f"-pirn-list={here}/functions.txt"]), ("without", [])):
            for level in (["-O2"] if kind == "quick" else ["-O0", "-O2"]):
                objects[name, what, level] = compile_to(folder / f"{name}_{what}{level}.o", name + ".cpp", level, *options)
    linkers = [[f"-fuse-ld={shutil.which('ld.lld-' + version)}"], *([["-fuse-ld=bfd"]] if kind == "slow" else [])]
    for linker in linkers:
        said = set()
        for level in (["-O2"] if kind == "quick" else ["-O0", "-O2"]):
            for other in (["-O2"] if kind == "quick" else ["-O0", "-O2"]):
                for what in ("with", "without"):
                    run(compiler, *linker, switch, objects["list_caller", what, level], objects["list_callee", what, other],
                        "-o", folder / "listed")
                    said.add(run(folder / "listed"))
            # One file with the list and one without: the linker names the functions.
            for caller, callee, mark in (("with", "without", ".preserve_none"), ("without", "with", "")):
                text = run(compiler, *linker, switch, objects["list_caller", caller, level],
                           objects["list_callee", callee, level], "-o", folder / "listed", fails=True)
                for name in ("listed::shape::shape(long)", "by_c_name"):
                    expect(any(name in line and (mark in line if mark else ".preserve_none" not in line)
                               for line in text.split("\n") if "undefined" in line), f"{name} is not named:\n{text}")
                expect("listed::excluded" not in text, f"what is not listed is missing:\n{text}")
        expect(len(said) == 1, f"with and without the list: {said}")


def shared(program: Program, *options: str) -> None:
    library = program.folder / "libprogram.so"
    for link_time in ([], ["-flto=full", f"-fuse-ld={shutil.which('ld.lld-' + version)}"]):
        report = program.folder / "shared.json"
        made = compile_to(program.folder / "shared.o", "program.cpp", "-O2", "-fPIC", *link_time[:1], *loaded, "-mllvm",
                          f"-pirn-report={report}", *options)
        run(compiler, "-O2", "-shared", *link_time, made, "-o", library,
            *([f"-Wl,--load-pass-plugin={plugin}"] if link_time else []))
        program.check(f"a shared library {link_time}", "-rdynamic", library, f"-Wl,-rpath,{program.folder}")
        decided = decisions(report)
        expect(decided["bottom(long, long, long)"] and not decided["run(long)"], f"{link_time}: {decided}")


def for_aarch64(folder: Path) -> None:
    """The convention preserves other registers there: floating-point registers too, and x19, the base pointer."""
    emulator = "qemu-aarch64-static"
    if shutil.which(emulator) is None or shutil.which("aarch64-linux-gnu-g++") is None:
        print("AArch64 is left out: no cross compiler, or no", emulator)
        return
    for level in ("-O0", "-O2"):
        said = []
        for options in ([], loaded):
            run(compiler, "--target=aarch64-linux-gnu", "-std=c++20", level, "-static",
                f"-fuse-ld={shutil.which('ld.lld-' + version)}", *options, here / "program.cpp", here / "switch.cpp", "-o",
                folder / "for_aarch64")
            said.append(run(emulator, folder / "for_aarch64"))
        expect(said[0] == said[1], f"AArch64 {level}: {said}")


def main() -> None:
    missing = [each for each in (compiler, "ld.lld-" + version) if shutil.which(each) is None]
    if missing:
        print("skipped: no", *missing)
        sys.exit(77)
    with tempfile.TemporaryDirectory() as name:
        program = Program(Path(name))
        listed(Path(name))
        optimized(program)
        if kind == "quick":
            linked_whole(program, "full")
            return
        linked_whole(program, "full", "-g")
        linked_whole(program, "thin")
        shared(program)
        for_aarch64(Path(name))
        for options in (["-g"], ["-fno-omit-frame-pointer", "-fcf-protection=full"], ["-march=native"]):
            optimized(program, *options)
        for options in (["-O0"], ["-O1"], ["-O3", "-fstack-clash-protection"], ["-Os", "-fstack-protector-all"],
                        ["-O2", "-fno-plt"], ["-O2", "-fsanitize=undefined", "-fsanitize-trap=undefined"]):
            made = compile_to(program.folder / "other.o", "program.cpp", *options, *loaded)
            program.check(" ".join(options), made)
        text = run(compiler, "-O2", *loaded, "-mllvm", "-pirn-report=/proc/none", "-c", here / "program.cpp", "-o",
                   program.folder / "other.o", "-std=c++20", fails=True)
        expect("pirn: cannot write the report /proc/none/" in text, text)


main()
