#!/usr/bin/env python3
"""A program that was compiled with another aco.h than pirn's must not link: its structures are others.
aco_foreign.py CC LIBRARY..."""

import subprocess
import sys
import tempfile
from pathlib import Path

# As a header of libaco's declares them: by their plain names.
PROGRAM = """#include <stddef.h>
typedef struct aco aco_t;
typedef struct stack aco_share_stack_t;
extern __thread aco_t* aco_gtls_co;
void aco_thread_init(void (*last_word)(void));
aco_t* aco_create(aco_t* main_co, aco_share_stack_t* stack, size_t size, void (*fp)(void), void* arg);
aco_share_stack_t* aco_share_stack_new(size_t size);
void aco_resume(aco_t* co);
int main(void) {
  aco_thread_init(NULL);
  aco_resume(aco_create(aco_create(NULL, NULL, 0, NULL, NULL), aco_share_stack_new(0), 0, NULL, aco_gtls_co));
  return 0;
}
"""


def main():
    compiler, libraries = sys.argv[1], sys.argv[2:]
    failed = False
    with tempfile.TemporaryDirectory(prefix="pirn-foreign-") as folder:
        source = Path(folder) / "program.c"
        source.write_text(PROGRAM)
        for library in libraries:
            done = subprocess.run([compiler, source, library, "-pthread", "-o", Path(folder) / "program"],
                                  capture_output=True, text=True, errors="replace")
            missing = [name for name in ("aco_thread_init", "aco_create", "aco_share_stack_new", "aco_resume", "aco_gtls_co")
                       if name not in done.stderr]
            if done.returncode == 0 or missing:
                failed = True
                print(f"FAILED {library}: the linker does not miss {', '.join(missing)}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
