#!/usr/bin/env python3
"""Random programs with switches woven in, with and without the plugin: propagation_random.py INCLUDE COUNT [SEED] VERSION=PLUGIN...

Ends with 77, skipped, where csmith or a compiler is missing.
"""

import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

here = Path(__file__).parent / "propagation"
seconds = 10  # a program that runs longer without the plugin is skipped: many do, some for ever
declaration = "extern __attribute__((preserve_none)) void weave(void);\n"


def weave(text: str, chance: random.Random) -> str:
    """Inserts switches at the beginning of blocks, in some functions often, in some never; some functions are not
    inlined."""
    functions = re.split(r"(?m)^(?=static .*\bfunc_\d+\(.*\)\n)", text)
    for i in range(1, len(functions)):
        often = chance.choice([0, 0.5, 1, 1])
        functions[i] = re.sub(r"\{ /\* block id: \d+ \*/", lambda at: at[0] + (" weave();" if chance.random() < often else ""),
                              functions[i])
        if chance.random() < 0.9:
            functions[i] = "__attribute__((noinline)) " + functions[i]
    return declaration + "".join(functions)


def main() -> int:
    include, count, rest = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    seed = int(rest.pop(0)) if rest[0].isdigit() else 1
    plugins = dict(each.split("=") for each in rest)
    missing = [each for each in ["csmith", *("clang-" + version for version in plugins)] if shutil.which(each) is None]
    if not Path("/usr/include/csmith/csmith.h").exists():
        missing.append("csmith.h")
    if missing:
        print("skipped: no", *missing)
        return 77
    compared = propagated = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def run(*command: object, limit: int = 300) -> subprocess.CompletedProcess[str]:
            return subprocess.run([str(each) for each in command], capture_output=True, text=True, timeout=limit, cwd=folder)

        for version in plugins:
            done = run("clang++-" + version, "-std=c++20", "-O2", "-I", include, "-c", here / "weave.cpp", "-o", f"weave{version}.o")
            if done.returncode != 0:
                print(done.stderr)
                return 1
        while compared < count:
            seed += 1
            chance = random.Random(seed)
            text = run("csmith", "--seed", seed, "--max-funcs", 12, "--no-volatiles").stdout
            (folder / "program.c").write_text(weave(text, chance))
            version = chance.choice(list(plugins))
            level = chance.choice(["-O1", "-O2", "-O3", "-Os"])
            loaded = ["-fplugin=" + plugins[version], "-fpass-plugin=" + plugins[version]]
            said = []
            for options in ([], [*loaded, "-mllvm", "-pirn-report=report.json"]):
                made = run("clang-" + version, "-w", level, "-I/usr/include/csmith", *options, "program.c", f"weave{version}.o",
                           "-o", "program")
                if made.returncode != 0:
                    print(f"csmith --seed {seed}, clang {version} {level} {options}\n{made.stderr}")
                    return 1
                try:
                    done = run("./program", limit=seconds * (1 + 4 * len(said)))
                    said.append((done.returncode, done.stdout))
                except subprocess.TimeoutExpired:
                    said.append(("too long", ""))
                if said == [("too long", "")]:
                    break
            if len(said) == 1:
                continue
            if said[0] != said[1]:
                kept = Path(tempfile.gettempdir()) / f"propagation_random_{seed}.c"
                shutil.copy(folder / "program.c", kept)
                print(f"csmith --seed {seed}, clang {version} {level}: {said[0]} without, {said[1]} with the plugin: {kept}")
                return 1
            propagated_here = sum(each["propagated"] for each in json.loads((folder / "report.json").read_text())["functions"])
            compared += propagated_here != 0
            propagated += propagated_here
    print(f"{compared} programs, in which {propagated} functions got the convention")
    return 0


sys.exit(main())
