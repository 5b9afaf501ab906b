"""One way to wait: a wait begins, ends and wakes in the files that are named for it, and nowhere else."""

import re

from tree import Tree, without_comments

FIBER = "include/pirn/fiber/"
SUSPEND = {FIBER + "detail/suspend.hpp", "src/fiber/suspend.cpp"}
QUEUES = {FIBER + "detail/worker.hpp", FIBER + "detail/run_queue.hpp", FIBER + "detail/stealable_queue.hpp",
          "src/fiber/stealing.cpp", "src/fiber/worker.cpp"}

# (what, pattern of a call or definition, how many calls there are, files that may have them).
RULES = [
    ("a deadline becomes a timer", r"(?:\.|->)arm\(", 1, {"src/fiber/suspend.cpp"}),
    ("an agent begins a wait", r"(?:\.|->)begin\([^()]*\bepoch\b", 1, {FIBER + "detail/suspend.hpp"}),
    ("a wait is opened to stops", r"(?:\.|->)open_to_stop\(", None,
     SUSPEND | {FIBER + "detail/coroutine_wait.hpp"}),
    ("an agent suspends by the slow way", r"(?<!void )\bsuspend_slow\(", None,
     SUSPEND | {FIBER + "detail/coroutine_wait.hpp"}),
    ("a waiter is removed from its list", r"(?:\.|->)remove\((?:p->)?node\)", 1, {FIBER + "expert/wait_queue.hpp"}),
    # A new fiber is queued by its runtime, a migrating one by `migrate_to`; all others were woken.
    ("a fiber is queued on another worker", r"(?:\.|->)(?:push_remote|inject|inject_stealable|adopt_remote)\(", None,
     QUEUES | {"src/fiber/schedule.cpp", "src/fiber/runtime.cpp", "src/fiber/this_fiber.cpp"}),
    ("a woken fiber goes to the LIFO slot", r"(?:\.|->)push_lifo_slot\(", None, QUEUES | {"src/fiber/schedule.cpp"}),
    ("a woken fiber goes ahead of the others", r"(?:\.|->)push_woken\(", None,
     QUEUES | SUSPEND | {"src/fiber/schedule.cpp"}),
    ("a parked worker is woken", r"(?:\.|->)interrupt_poll\(", 1, {FIBER + "detail/idle_workers.hpp"}),
    ("a thread is woken", r"static_cast<thread_agent&>\(\w+\)\.wake\(", 1, {"src/fiber/schedule.cpp"}),
]


def waits(tree: Tree) -> list[str]:
    findings = []
    for what, pattern, wanted, files in RULES:
        calls = 0
        for path in tree.cxx("include", "src"):
            if "/sim/" in path:
                continue
            for number, line in enumerate(without_comments(tree.text(path)).split("\n"), 1):
                for _ in re.finditer(pattern, line):
                    calls += 1
                    if path not in files:
                        findings.append(f"{path}:{number}: {what} outside of {', '.join(sorted(files))}")
        if wanted is not None and calls > wanted:
            findings.append(f"{what} in {calls} places, not in {wanted}")
    return findings
