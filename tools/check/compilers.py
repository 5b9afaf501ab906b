"""Rules that ask a compiler: headers alone, code blocks of the docs, clang-tidy."""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tree import Tree, defines_of, layer_of, standard_of

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
GTEST = "/usr/src/googletest/googletest/include"


# Headers for another instruction set than this machine's, those that only the file of an instruction set includes, and
# those of macros alone, which have no declaration: tests/abi and tests/c_api compile them.
FOREIGN_ISA = re.compile(r"/arch/((?!x86_64/|shared/(assembly|operands|types)\.)[\w/]+\.hpp|text/\w+\.h)$")
# Those that include what includes them, to be read there only.
PART_OF_ANOTHER = re.compile(r"/(conformance|aco_switch)_(isa|x86_64|x86|i386|aarch64|ppc64le|riscv64)\.hpp$")
# Its programs include the single header, which a release makes.
WITH_SINGLE_HEADER = "tests/install/single/"


def headers(tree: Tree) -> list[str]:
    """Every header compiles by itself, in the standard of its layer, with every compiler that the layer promises."""
    commands = []
    for path in tree.cxx("include"):
        if not path.endswith((".hpp", ".h")) or FOREIGN_ISA.search(path):
            continue
        compilers = [("clang++-22", ["-Wno-pragma-once-outside-header"]), ("g++-12", [])]
        if layer_of(path) in ("detail", "context") and shutil.which("clang++-14"):
            compilers.append(("clang++-14", ["-Wno-pragma-once-outside-header"]))
        for compiler, flags in compilers:
            language = "c" if path.endswith(".h") else "c++"
            command = [compiler.replace("++", "").replace("g-12", "gcc-12") if language == "c" else compiler,
                       "-fsyntax-only", "-Iinclude", *defines_of(path), *WARNINGS, *flags]
            command += ["-std=c17"] if language == "c" else [standard_of(path)]
            # gcc warns of #pragma once in a main file and has no switch for it, so it sees an #include.
            if compiler.startswith("g"):
                command += ["-x", language, "-include", path, "/dev/null"]
            else:
                command += ["-x", language, path]
            commands.append((f"{path}: does not compile alone with {compiler}", command))
    return tree.run_each(commands)


# The files of ours that a header may pull in: who includes a lock does not want a scheduler. Its policy for waiters and the
# word of the thread, in assembly, are two of them.
MAX_PULLED = {"pirn/sync/mutex.hpp": 12, "pirn/sync/semaphore.hpp": 11, "pirn/sync/event.hpp": 11, "pirn/sync/channel.hpp": 59}


def weight(tree: Tree) -> list[str]:
    findings = []
    for header, most in MAX_PULLED.items():
        if f"include/{header}" not in tree.paths:
            continue
        asked = subprocess.run(["clang++-22", "-std=c++23", "-Iinclude", "-x", "c++", "-M", f"include/{header}"], cwd=tree.root,
                               capture_output=True, text=True)
        pulled = [name for name in asked.stdout.split() if "include/pirn/" in name and not name.endswith(header)]
        if asked.returncode or len(pulled) > most:
            findings.append(f"{header} pulls in {len(pulled)} files of ours, more than {most}: {' '.join(pulled)} {asked.stderr}")
    return findings


BLOCK = re.compile(r"(?P<marks>(?:<!--[^\n]*-->\s*\n\s*)*)^```(?:cpp|c\+\+)\s*\n(?P<code>.*?)^```\s*$", re.M | re.S)


def blocks_of(text: str):
    """(line, origin or None, is body, code) of each C++ block."""
    for match in BLOCK.finditer(text):
        marks = match.group("marks")
        origin = re.search(r"<!--\s*from:\s*(\S+)\s*-->", marks)
        line = text.count("\n", 0, match.start("code")) + 1
        yield line, origin.group(1) if origin else None, bool(re.search(r"<!--\s*body\s*-->", marks)), match.group("code")


def docs(tree: Tree) -> list[str]:
    """A code block is either the text of an example, to the letter, or compiles by itself."""
    findings, commands = [], []
    with tempfile.TemporaryDirectory() as scratch:
        for path in (p for p in tree.paths if p.endswith(".md")):
            headers = headers_of_page(tree.text(path))
            for line, origin, body, code in blocks_of(tree.text(path)):
                title = f"{path}:{line}"
                if origin:
                    if not (tree.root / origin).is_file():
                        findings.append(f"{title}: comes from {origin}, which is not there")
                    elif tree.text(origin).strip() != code.strip():
                        findings.append(f"{title}: differs from {origin}; run ./dev format")
                    continue
                file = Path(scratch) / f"block{len(commands)}.cpp"
                file.write_text(as_unit(code, headers) if body else code)
                command = ["clang++-22", "-std=c++23", "-fsyntax-only", "-Wall", "-Wextra", "-Wno-unused", "-Werror",
                           f"-I{tree.root / 'include'}", str(file)]
                commands.append((f"{title}: the code block does not compile", command))
        return findings + tree.run_each(commands)


# Where a page says what its blocks of statements need.
PAGE_HEADERS = re.compile(r"^Blocks without a `main` .*$", re.M)


def headers_of_page(text: str) -> list[str]:
    return [name if name.startswith("<") else f'"{name}"'
            for line in PAGE_HEADERS.findall(text) for name in re.findall(r"`(<\w[\w./]*>|pirn/[\w./]+\.hpp)`", line)]


def as_unit(code: str, headers: list[str]) -> str:
    """A block marked as body stands for statements: in a function, below what it includes and what its page names."""
    wanted = [f"#include {name}" for name in headers] + [line for line in code.split("\n") if line.startswith("#include")]
    rest = [line for line in code.split("\n") if not line.startswith("#include")]
    return "\n".join([*wanted, "void shown_in_the_docs();", "void shown_in_the_docs() {", *rest, "}", ""])


def paste(tree: Tree, quiet: bool = False) -> None:
    """Brings the blocks that come from an example up to date (part of ./dev format)."""
    for path in (p for p in tree.paths if p.endswith(".md")):
        text = tree.text(path)

        def renew(match: re.Match) -> str:
            origin = re.search(r"<!--\s*from:\s*(\S+)\s*-->", match.group("marks"))
            if not origin or not (tree.root / origin.group(1)).is_file():
                return match.group(0)
            whole, begin = match.group(0), match.start()
            before, after = whole[:match.start("code") - begin], whole[match.end("code") - begin:]
            return before + tree.text(origin.group(1)).strip() + "\n" + after

        renewed = BLOCK.sub(renew, text)
        if renewed != text:
            (tree.root / path).write_text(renewed)
            if not quiet:
                print(f"pasted into {path}")


def tidy(tree: Tree) -> list[str]:
    """clang-tidy finds nothing: in what changed, or in everything."""
    files = tree.cxx("include", "src", "tests", "examples")
    if not tree.everything:
        changed = tree.changed()
        files = [f for f in files if f in changed]
    config = Path(__file__).resolve().parents[2] / ".clang-tidy"
    commands = []
    for path in files:
        if path.endswith(".h") or FOREIGN_ISA.search(path) or PART_OF_ANOTHER.search(path) or path.startswith(WITH_SINGLE_HEADER):
            continue
        commands.append((f"{path}: clang-tidy", [
            "clang-tidy-22", "--quiet", f"--config-file={config}", path, "--", "-x", "c++", standard_of(path), *defines_of(path), "-Iinclude",
            "-I.", "-Icompat", "-Isrc", "-Itests", "-isystem", GTEST, "-Wno-pragma-once-outside-header"]))
    return tree.run_each(commands)


if __name__ == "__main__":
    paste(Tree(Path(sys.argv[1])))
