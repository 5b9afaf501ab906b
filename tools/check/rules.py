"""Rules about the text of files. Each takes a tree and returns its findings, one string each."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tree import LAYERS, Tree, layer_of, without_comments

MAX_LINES = 600
MAX_CLASS_LINES = 120  # of a primitive, from its head to its closing brace
LONG_CLASSES = {"channel"}
CLASS = re.compile(r"(?:class|struct) (?:PIRN_\w+ |\[\[\w+\]\] |alignas\((?:[^()]|\([^()]*\))*\) )*(\w+)[^;]*$")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')

FENCE = re.compile(r"\b(light_fence|heavy_fence|signal_fence|atomic_thread_fence)\(")
# Only the platform seam may name these: an exploring build replaces what is behind it.
SEAM = re.compile(r"^(include/pirn/detail/platform[^/]*\.hpp|src/detail/.*|src/sim/.*)$")
NONDETERMINISTIC = [
    re.compile(r"\bstd::(atomic|jthread|thread|mutex|recursive_mutex|timed_mutex|shared_mutex|condition_variable|"
               r"random_device|mt19937|this_thread|atomic_thread_fence|atomic_signal_fence|async|barrier|latch|"
               r"counting_semaphore|call_once|once_flag)\b"),
    re.compile(r"_clock::now\s*\("),
    re.compile(r"\b__(atomic|sync)_\w+"),
    re.compile(r"#\s*include\s*<(atomic|thread|mutex|shared_mutex|condition_variable|random|barrier|latch|semaphore|future)>"),
]
# Spelled in pieces, or this file would be its own finding.
MACHINE_PATH = re.compile(r"(?<![\w.}/)-])/(" + "|".join(["wo" + "rk", "ro" + "ot", "fa" + "rm", "tmp/" + "pirn"]) + r")\b")
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"]) + r")\b")
# What no assembler keeps beyond .cfi_restore_state, tried with those of clang 14, 19 and 22 and of binutils 2.40.
CFI_DIRECTIVE = re.compile(r"\.(cfi_\w+)")
CFI_NOT_TRACKED = {"cfi_remember_state", "cfi_restore_state", "cfi_escape", "cfi_register", "cfi_offset",
                   "cfi_same_value", "cfi_undefined", "cfi_personality"}
# A function that is nothing but assembly: what is tracked there is its own.
WHOLE_FUNCTION = re.compile(r"(#define )?PIRN_\w+_FUNCTION\(|#define PIRN_ACO_SWITCH\(|.*\bPIRN_NAKED .*\(")
# The parts of the switch. Only arch.hpp and arch_fiber.hpp choose the instruction set, and include its files.
ISA_PART = re.compile(r"pirn/context/arch/(?!shared/|text/)")
SHARED_PART = re.compile(r"pirn/context/arch/(shared|text)/")
ISA_CHOICE = re.compile(r"include/pirn/(context/(arch|arch_fiber)\.hpp|inline\.h)$")
FOREIGN_PATH = re.compile(r"(^|/)(LICENSE|Cargo\.lock|go\.sum)$|\.(png|svg|ico|jpg)$")


def lines_of(text: str) -> Iterator[tuple[int, str]]:
    return enumerate(text.split("\n"), 1)


def layering(tree: Tree) -> list[str]:
    """A file includes only from its own layer or from one to its left."""
    findings = []
    for path in tree.cxx("include", "src", "tests"):
        own = layer_of(path)
        product = not path.startswith("tests/")
        for number, line in lines_of(without_comments(tree.text(path), keep_strings=True)):
            match = INCLUDE.match(line)
            if not match:
                continue
            target = match.group(1)
            parts = target.split("/")
            if ".." in parts:
                findings.append(f"{path}:{number}: names a parent folder: {target}")
            if product and parts[0] in ("boost", "asio", "gtest", "fmt") and own not in ("net", "http", "rpc"):
                findings.append(f"{path}:{number}: depends on more than libc and the C++ runtime: {target}")
            if why := wrong_isa_part(path, target):
                findings.append(f"{path}:{number}: {why}: {target}")
            name = parts[1] if parts[0] == "pirn" and len(parts) > 2 else parts[0] if len(parts) > 1 else None
            if own and name in LAYERS and LAYERS.index(name) > LAYERS.index(own):
                findings.append(f"{path}:{number}: {own} includes from {name}, which lies to its right: {target}")
    return findings


def wrong_isa_part(path: str, target: str) -> str | None:
    """Returns what is wrong with an include of a part of the switch."""
    own = re.match(r"include/(pirn/context/arch/\w+)", path)
    chooses = ISA_CHOICE.match(path)
    of_same_isa = own and (target.startswith(own.group(1) + "/") or target == own.group(1).removesuffix("_fork") + ".hpp")
    if ISA_PART.match(target) and not chooses and not of_same_isa:
        return "the file of one instruction set, which arch.hpp or arch_fiber.hpp chooses"
    if SHARED_PART.match(target) and not chooses and not own and not path.startswith("src/compat/aco_switch_"):
        return "a part of the files in pirn/context/arch, for these only"
    left_of_fiber = layer_of(path) in LAYERS[:LAYERS.index("fiber")] or not layer_of(path)
    if target == "pirn/context/arch_fiber.hpp" and left_of_fiber and not path.startswith("tests/context/conformance"):
        return "has the switches of fibers, for the layer fiber"
    return None


def seam(tree: Tree) -> list[str]:
    """Atomics, clocks, random numbers and OS threads come from pirn/detail/platform.hpp only."""
    findings = []
    for path in tree.cxx("include", "src"):
        if SEAM.match(path):
            continue
        for number, line in lines_of(without_comments(tree.text(path))):
            for pattern in NONDETERMINISTIC:
                match = pattern.search(line)
                if match:
                    findings.append(f"{path}:{number}: not behind the platform seam: {match.group(0)}")
    return findings


def fences(tree: Tree) -> list[str]:
    """Each fence says in a comment, on its line or right above its statement, what it pairs with."""
    findings = []
    for path in tree.cxx("include", "src"):
        if SEAM.match(path) or path.startswith("src/sim/"):
            continue
        lines = tree.text(path).split("\n")
        for number, line in enumerate(lines):
            code, _, comment = line.partition("//")
            if not FENCE.search(code):
                continue
            above = number
            while above > 0 and (lines[above - 1].lstrip().startswith("//")
                                 or not re.search(r"[;{}]\s*(//.*)?$", lines[above - 1])):
                above -= 1
            if not re.search(r"[Pp]airs with", " ".join([*lines[above:number], comment])):
                findings.append(f"{path}:{number + 1}: a fence without a comment that says what it pairs with")
    return findings


def shape(tree: Tree) -> list[str]:
    """What every header of ours has, and what none has."""
    findings = []
    for path in tree.cxx("include", "src"):
        text = without_comments(tree.text(path))
        lines = text.split("\n")
        header = path.endswith((".hpp", ".h"))
        if header and not re.search(r"^#pragma once$", text, re.M):
            findings.append(f"{path}: lacks #pragma once")
        for number, line in lines_of(text):
            if header and re.match(r"\s*using namespace\b", line):
                findings.append(f"{path}:{number}: using namespace in a header")
            if path.startswith("include/") and re.search(r"\berrno\b", line) and not SEAM.match(path):
                findings.append(f"{path}:{number}: errno in a header; errors are values")
            define = re.match(r"\s*#\s*define\s+(\w+)", line)
            if header and define and not define.group(1).startswith("PIRN_"):
                findings.append(f"{path}:{number}: macro without PIRN_: {define.group(1)}")
            if re.match(r"\s*namespace\s+pirn\b(?!\s*=)", line) and not re.match(
                    r"namespace pirn \{\nPIRN_ABI_NAMESPACE_BEGIN$", "\n".join(lines[number - 1:number + 1])):
                findings.append(f"{path}:{number}: outside the inline namespace: PIRN_ABI_NAMESPACE_BEGIN is to follow")
    return findings


def unwind_tables(tree: Tree) -> list[str]:
    """No table inside an asm changes what an assembler believes of the function around it, as a .cfi_def_cfa does."""
    findings = []
    for path in tree.cxx("include", "src"):
        text = tree.text(path)
        plain = text.split("\n")
        whole = remembered = False  # a function that is nothing but assembly ends with a brace or an empty line
        for number, line in lines_of(without_comments(text, keep_strings=True)):
            whole = bool(WHOLE_FUNCTION.match(line)) or (whole and plain[number - 1] not in ("", "}"))
            for directive in CFI_DIRECTIVE.findall(line):
                remembered = directive == "cfi_remember_state" or (remembered and directive != "cfi_restore_state")
                if directive not in CFI_NOT_TRACKED and (not whole or remembered):
                    findings.append(f"{path}:{number}: .{directive} in an asm stays in the assembler; write .cfi_escape")
    return findings


def text_of_all(tree: Tree) -> list[str]:
    """No file is too long, unfinished, or names a path of one machine."""
    findings = []
    for path in tree.paths:
        if FOREIGN_PATH.search(path):
            continue
        text = tree.text(path)
        count = text.count("\n")
        if count > MAX_LINES and not path.endswith(".json"):
            findings.append(f"{path}: {count} lines; {MAX_LINES} are the limit")
        for number, line in lines_of(text):
            for pattern, what in ((MACHINE_PATH, "a path of one machine"), (UNFINISHED, "unfinished")):
                match = pattern.search(line)
                if match:
                    findings.append(f"{path}:{number}: {what}: {match.group(0)}")
    return findings


def short_classes(tree: Tree) -> list[str]:
    """A reader takes in a class of sync at once. Its template head and the comment above it do not count."""
    findings = []
    for path in tree.cxx("include/pirn/sync", "src/sync"):
        begin, name = 0, ""
        for number, line in lines_of(without_comments(tree.text(path))):
            head = CLASS.match(line)
            if head:  # a declaration ends in a semicolon; a definition goes up to the brace in the first column
                begin, name = number, head.group(1)
            elif line.startswith("}") and name:
                count = number - begin + 1
                if count > MAX_CLASS_LINES and name not in LONG_CLASSES:
                    findings.append(f"{path}:{begin}: {name} has {count} lines; {MAX_CLASS_LINES} are the limit")
                name = ""
    return findings


def formatting(tree: Tree) -> list[str]:
    """clang-format would change nothing."""
    findings = []
    files = tree.cxx()
    for begin in range(0, len(files), 50):
        done = subprocess.run(["clang-format-22", f"--style=file:{Path(__file__).resolve().parents[2] / '.clang-format'}",
                               "--dry-run", "--ferror-limit=1", *files[begin:begin + 50]],
                              cwd=tree.root, capture_output=True, text=True)
        found = re.findall(r"^(.+?):(\d+):\d+: (?:warning|error): code should be clang-formatted", done.stderr, re.M)
        findings += [f"{name}:{number}: not formatted; run ./dev format" for name, number in found]
        if done.returncode and not found:
            findings.append(done.stderr.strip())
    return findings
