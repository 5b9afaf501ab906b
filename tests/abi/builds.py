#!/usr/bin/env python3
"""Builds that a switch cannot serve are refused with a message, and builds with different layouts have different names.
A C program may have an object that uses the context layer: that needs no C++ runtime, and is linked without one."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SKIPPED = 77
INCLUDES = [f"-I{ROOT}/include", f"-I{ROOT}/src"]
SOURCES = [str(ROOT / "src" / "stack" / name) for name in ("stack.cpp", "address_space.cpp")]

# A generator that is ended early, and all of context, stack and coro that its headers include.
PROGRAM = """#include <cstdio>
#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/generator.hpp"
alignas(64) static char memory[65536];
int main() {
  for (int n : pirn::generator<int>(pirn::stack(memory, memory + sizeof memory), [](auto& yield) { for (;;) yield(1); })) {
    if (n == 1) break;
  }
  std::puts(PIRN_ABI_NAME);
}
"""
FIBERS = "#include \"pirn/fiber/runtime.hpp\"\nint main() {}\n"

# (compiler, flags, program, the required text of the compiler or the program)
REFUSED = [
    ("clang++-22", ["-fsanitize=safe-stack"], PROGRAM, "safe-stack is not supported"),
    # Without a cross compiler the headers of that machine are missing, which -MG takes for headers yet to be made.
    ("clang++-22", ["--target=aarch64-linux-gnu", "-ffixed-x18", "-fsanitize=shadow-call-stack", "-M", "-MG"],
     "#include \"pirn/detail/abi.hpp\"\n", "shadow-call-stack is not supported"),
    ("clang++-22", ["--target=arm-linux-gnueabihf", f"-I{ROOT}/compat", "-nostdinc", "-M", "-MG"], "#include \"aco.h\"\n",
     "aco.h supports x86-64, i386 and AArch64"),
    ("clang++-22", ["--target=arm-linux-gnueabihf", "-nostdinc", "-M", "-MG"], "#include \"pirn/inline.h\"\n",
     "no context switch for this instruction set"),
    *((compiler, ["-fsplit-stack", level, f"-fuse-ld={linker}"], PROGRAM, "-fsplit-stack, which does not support pirn's stacks")
      for compiler, linkers in (("clang++-22", ("bfd", "lld")), ("g++-12", ("bfd",)))
      for linker in linkers for level in ("-O0", "-O2")),
    ("clang++-22", ["-fno-exceptions"], PROGRAM, "needs exceptions"),
    ("g++-12", ["-fno-exceptions"], PROGRAM, "needs exceptions"),
    ("clang++-22", ["-fno-exceptions"], FIBERS, "needs exceptions"),
    ("g++-12", ["-fno-exceptions"], FIBERS, "needs exceptions"),
]
# Has the compiler claim the attribute preserve_none and not preserve_most, as gcc 15 does.
LIKE_GCC_15 = ["-D__has_attribute(name)=CLAIMED_##name", "-DCLAIMED_preserve_none=1"]
# Flags that each give a different name from all others of their compiler.
NAMES = {
    "g++-12": [[], LIKE_GCC_15, ["-D_GLIBCXX_DEBUG"], ["-D_GLIBCXX_USE_CXX11_ABI=0"],
               ["-D_GLIBCXX_DEBUG", "-D_GLIBCXX_USE_CXX11_ABI=0"]],
    "clang++-22": [[], ["-D_GLIBCXX_DEBUG"], ["-stdlib=libc++"],
                   *(["-stdlib=libc++", f"-D_LIBCPP_ABI_{name}"] for name in (
                       "BOUNDED_ITERATORS", "BOUNDED_ITERATORS_IN_STRING", "BOUNDED_ITERATORS_IN_VECTOR",
                       "BOUNDED_ITERATORS_IN_STD_ARRAY", "BOUNDED_UNIQUE_PTR", "ENABLE_UNIQUE_PTR_TRIVIAL_ABI",
                       "ALTERNATE_STRING_LAYOUT"))],
}


def library(compiler, folder):
    """Returns the objects of the library, built as by a packager, without the flags of a program."""
    objects = [Path(folder) / f"{compiler}-{Path(source).stem}.o" for source in SOURCES]
    for source, built in zip(SOURCES, objects):
        if not built.exists():
            subprocess.run([compiler, "-std=c++23", *INCLUDES, "-c", source, "-o", built], check=True)
    return objects


def said_by(compiler, flags, program, folder):
    """Returns the output of the compiler, or of the program if it compiles, and whether both succeeded."""
    source, output = Path(folder) / "program.cpp", Path(folder) / "program"
    source.write_text(program)
    command = [compiler, "-std=c++23", *flags, *INCLUDES, str(source), *([] if "-E" in flags else library(compiler, folder)),
               "-pthread", "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode == 0 and "-E" not in flags:
        done = subprocess.run([output], capture_output=True, text=True, errors="replace", timeout=20)
    return done.stdout + done.stderr, done.returncode == 0


def needs_the_cxx_runtime(compiler, level, folder):
    """Returns the output of the C linker for a program with one object of the context layer; empty if that runs."""
    program, of_cxx, of_c, output = (Path(folder) / name for name in ("layer.cpp", "layer.o", "main.c", "of_c"))
    program.write_text("#include \"pirn/context/arch.hpp\"\nextern \"C\" int zero() { return 0; }\n")
    of_c.write_text("int zero(void);\nint main(void) { return zero(); }\n")
    subprocess.run([compiler, "-std=c++20", level, *INCLUDES, "-c", program, "-o", of_cxx], check=True)
    linker = compiler.replace("clang++", "clang").replace("g++", "gcc")
    done = subprocess.run([linker, of_c, of_cxx, "-o", output], capture_output=True, text=True)
    return done.stderr if done.returncode else "" if subprocess.run([output]).returncode == 0 else "it fails"


def main():
    failures = tried = 0
    with tempfile.TemporaryDirectory(prefix="pirn-builds-") as folder:
        for compiler in filter(shutil.which, ("clang++-22", "clang++-19", "g++-12")):
            for level in ("-O0", "-O2"):
                tried += 1
                if said := needs_the_cxx_runtime(compiler, level, folder):
                    failures += 1
                    print(f"FAILED {compiler} {level}: a program of C with the context layer is not linked\n{said[:1500]}")
        for compiler, flags, program, message in REFUSED:
            if not shutil.which(compiler):
                continue
            tried += 1
            said, content = said_by(compiler, flags, program, folder)
            if content or message not in said:
                failures += 1
                print(f"FAILED {compiler} {' '.join(flags)}: {'not refused' if content else said[:1500]}")
        for compiler, builds in NAMES.items():
            if not shutil.which(compiler):
                continue
            names = {}
            for flags in builds:
                tried += 1
                program = "#include <cstdio>\n#include \"pirn/detail/abi.hpp\"\nint main() { std::puts(PIRN_ABI_NAME); }\n"
                source = Path(folder) / "name.cpp"
                source.write_text(program + "pirn_is PIRN_ABI\n")
                said = subprocess.run([compiler, "-std=c++20", *flags, *INCLUDES, "-E", str(source)], capture_output=True,
                                      text=True).stdout
                name = said.rsplit("pirn_is", 1)[-1].strip()
                expected = "v1_gnone_" if flags == LIKE_GCC_15 else "v1_"
                if not name.startswith(expected) or name in names:
                    failures += 1
                    print(f"FAILED {compiler} {' '.join(flags)}: has the name {name!r} of {' '.join(names.get(name, []))}")
                names[name] = flags
    print(f"{tried - failures} of {tried} builds as they should be")
    return SKIPPED if not tried else failures != 0


if __name__ == "__main__":
    sys.exit(main())
