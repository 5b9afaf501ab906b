#!/usr/bin/env python3
"""A program that was compiled with another aco.h than pirn's does not link, and the linker prints the remedy. A program
that was compiled with pirn's links, in every way of linking.

    aco_foreign.py CC SHARED ARCHIVE FOREIGN_ARCHIVE LINKER_SCRIPT"""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MESSAGE = "this_program_was_compiled_with_libaco_s_own_aco_h_not_with_pirn_s__see_docs_porting_md"

# Declared as a header of libaco does, by their plain names.
FOREIGN = """#include <stddef.h>
typedef struct aco aco_t;
typedef struct stack aco_share_stack_t;
extern __thread aco_t* aco_gtls_co;
void aco_runtime_test(void);
void aco_thread_init(void (*last_word)(void));
void* acosw(aco_t* from, aco_t* to);
void aco_save_fpucw_mxcsr(void* p);
void aco_funcp_protector_asm(void);
void aco_funcp_protector(void);
aco_share_stack_t* aco_share_stack_new(size_t size);
aco_share_stack_t* aco_share_stack_new2(size_t size, char guard);
void aco_share_stack_destroy(aco_share_stack_t* stack);
aco_t* aco_create(aco_t* main_co, aco_share_stack_t* stack, size_t size, void (*fp)(void), void* arg);
void aco_resume(aco_t* co);
void aco_yield(void);
void aco_yield1(aco_t* co);
void aco_exit(void);
void aco_exit1(aco_t* co);
void aco_destroy(aco_t* co);
void aco_reset(aco_t* co);
int main(void) {
  void* volatile used = (void*)(USED);
  return used == NULL;
}
"""
NAMES = [line.split("(")[0].split()[-1].lstrip("*") for line in FOREIGN.splitlines()
         if line.startswith(("void", "aco_"))] + ["aco_gtls_co"]
OURS = """#include "aco.h"
static void body(void) { aco_exit(); }
int main(void) {
  aco_thread_init(NULL);
  aco_t* main_co = aco_create(NULL, NULL, 0, NULL, NULL);
  aco_share_stack_t* stack = aco_share_stack_new(0);
  aco_t* co = aco_create(main_co, stack, 0, body, NULL);
  aco_resume(co);
  return !co->is_end;
}
"""
# The ways in which a program with pirn's header may be linked; the libraries come last.
WAYS = [[], ["-Wl,--no-undefined"], ["-Wl,--as-needed"], ["-Wl,--gc-sections"], ["-Wl,--whole-archive"]]


def linkers(compiler, folder):
    """Returns the linkers that the compiler can use, as flags."""
    source = Path(folder) / "empty.c"
    source.write_text("int main(void) { return 0; }\n")
    flags = [f"-fuse-ld={name}" for name in ("bfd", "lld")]
    return [flag for flag in flags
            if subprocess.run([compiler, flag, source, "-o", Path(folder) / "empty"], capture_output=True).returncode == 0]


def main():
    compiler, shared, archive, foreign, script = sys.argv[1:]
    failures = tried = 0
    with tempfile.TemporaryDirectory(prefix="pirn-foreign-") as folder:
        # Where an installation has them.
        for path, name in ((shared, "libpirn_compat.so.0"), (foreign, Path(foreign).name), (script, "libpirn_compat.so")):
            (Path(folder) / name).symlink_to(path)
        libraries = {"static": [archive], "shared": [f"-L{folder}", "-lpirn_compat"], "by its path": [f"{folder}/libpirn_compat.so"]}
        program = Path(folder) / "program"

        def linked(source, linker, flags, library):
            whole = ["-Wl,--no-whole-archive"] if "-Wl,--whole-archive" in flags else []
            return subprocess.run([compiler, linker, source, *flags, *library, *whole, "-pthread", f"-Wl,-rpath,{folder}", "-o",
                                   program], capture_output=True, text=True, errors="replace")

        def compiled(name, text, *flags):
            source, built = Path(folder) / f"{name}.c", Path(folder) / f"{name}.o"
            source.write_text(text)
            subprocess.run([compiler, *flags, "-w", "-c", source, "-o", built], check=True)
            return built

        theirs = {name: compiled(name, FOREIGN, f"-DUSED={'&' if name == 'aco_gtls_co' else ''}{name}") for name in NAMES}
        ours = compiled("ours", OURS, f"-I{ROOT}/compat")
        for number, linker in enumerate(linkers(compiler, folder)):
            for kind, library in libraries.items():
                ways = WAYS[:1] if kind == "by its path" else WAYS
                names = NAMES if kind == "static" and number == 0 else ["aco_create"]
                for name in names:
                    built = theirs[name]
                    for flags in ways if name == "aco_create" else WAYS[:1]:
                        tried += 1
                        done = linked(built, linker, flags, library)
                        # For whole archives the linker sees code for other programs, and reports that name as missing.
                        message = name if "-Wl,--whole-archive" in flags else MESSAGE
                        if done.returncode == 0 or message not in done.stderr:
                            failures += 1
                            print(f"FAILED {name}, {linker}, {flags}, {kind}: is not told\n{done.stderr[:600]}")
                for flags in ways:
                    tried += 1
                    done = linked(ours, linker, flags, library)
                    if done.returncode == 0:
                        done = subprocess.run([program], capture_output=True, text=True, errors="replace", timeout=20)
                    if done.returncode != 0:
                        failures += 1
                        print(f"FAILED pirn's aco.h, {linker}, {flags}, {kind}: {done.returncode}\n{done.stderr[:600]}")
    print(f"{tried - failures} of {tried} links as they should be")
    return failures != 0 or not tried


if __name__ == "__main__":
    sys.exit(main())
