"""Every check has been seen to fail: each is given a small tree with one fault, and the same tree without it."""

import tempfile
from pathlib import Path

import compilers
import figures
import mutants
import prose
import public
import rules
import tables
import visible
import waits
from tree import Tree

GOOD_HEADER = """#pragma once

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
inline int one() { return 1; }
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
"""
HEADER = "include/pirn/context/x.hpp"
NO_ABI = GOOD_HEADER.replace("PIRN_ABI_NAMESPACE_BEGIN", "").replace("PIRN_ABI_NAMESPACE_END", "")
HIDDEN = GOOD_HEADER.replace("pirn {\nPIRN_ABI_NAMESPACE_BEGIN", "pirn::inline PIRN_ABI {").replace("PIRN_ABI_NAMESPACE_END", "")

# (check, path, faulty text, sound text): the first must be found, the second must not.
CASES = [
    (rules.layering, HEADER, '#include "pirn/fiber/fiber.hpp"\n', '#include "pirn/detail/abi.hpp"\n'),
    (rules.layering, "src/stack/x.cpp", '#include "fiber/queue.hpp"\n', '#include "stack/slab.hpp"\n'),
    (rules.layering, HEADER, '#include "../detail/abi.hpp"\n', '// #include "../detail/abi.hpp"\n'),
    (rules.layering, "src/fiber/x.cpp", "#include <boost/beast.hpp>\n", "#include <vector>\n"),
    (rules.layering, "src/fiber/x.cpp", '#include "pirn/context/arch/x86_64/fork.hpp"\n', '#include "pirn/context/arch_fiber.hpp"\n'),
    (rules.layering, "include/pirn/context/arch/i386.hpp", '#include "pirn/context/arch/x86_64/switch.hpp"\n',
     '#include "pirn/context/arch/shared/types.hpp"\n'),
    (rules.layering, "src/coro/x.cpp", '#include "pirn/context/arch_fiber.hpp"\n', '#include "pirn/context/arch.hpp"\n'),
    (rules.layering, "src/coro/x.cpp", '#include "pirn/context/arch/shared/types.hpp"\n', '#include "pirn/context/arch.hpp"\n'),
    (rules.layering, "include/pirn/pirn.h", '#include "pirn/context/arch/text/x86_64.h"\n', '#include "pirn/inline.h"\n'),
    (rules.seam, "src/sync/x.cpp", "std::atomic<int> x;\n", "platform::atomic<int> x;  // not std::atomic\n"),
    (rules.seam, HEADER, "#include <mutex>\n", "#include <memory>\n"),
    (rules.seam, HEADER, "auto t = std::chrono::steady_clock::now();\n", "auto t = platform::now();\n"),
    (rules.seam, HEADER, "int x = __atomic_load_n(&y, 0);\n", 'const char* x = "__atomic_load_n";\n'),
    (rules.fences, "src/fiber/x.cpp", "  a();\n  platform::heavy_fence();  // for order\n",
     "  // Pairs with the light fence in b.\n  platform::heavy_fence();\n"),
    (rules.fences, HEADER, "  // Pairs with c.\n  a();\n  platform::light_fence();\n",
     "  platform::light_fence();  // pairs with c\n"),
    (rules.seam, "src/fiber/x.cpp", "std::this_thread::yield();\n", "this_fiber::yield();\n"),
    (rules.shape, HEADER, GOOD_HEADER.replace("#pragma once", ""), GOOD_HEADER),
    (rules.shape, HEADER, NO_ABI, GOOD_HEADER),
    (rules.shape, HEADER, HIDDEN, GOOD_HEADER),
    (visible.visible, HEADER, HIDDEN, GOOD_HEADER),
    (rules.shape, HEADER, GOOD_HEADER + "#define X 1\n", GOOD_HEADER + "#define PIRN_X 1\n"),
    (rules.shape, HEADER, GOOD_HEADER + "using namespace std;\n", GOOD_HEADER + "using std::size_t;\n"),
    (rules.shape, HEADER, GOOD_HEADER + "int e = errno;\n", GOOD_HEADER + "int e = 0;  // never errno\n"),
    (rules.unwind_tables, HEADER, 'void f() { asm(PIRN_CFI(".cfi_def_cfa r9, 0")); }\n',
     'void f() { asm(PIRN_CFI(".cfi_escape 0x0c, 0x09, 0x00") PIRN_CFI(".cfi_register rip, r8")); '
     'asm(PIRN_CFI(".cfi_personality 0x1b, f")); }\n'),
    (rules.unwind_tables, HEADER, 'PIRN_NAKED void f() {\n}\nvoid g() { asm(".cfi_adjust_cfa_offset 8"); }\n',
     'PIRN_NAKED void f() {\n  asm(".cfi_adjust_cfa_offset 8");\n}\n'),
    (rules.unwind_tables, HEADER, 'PIRN_ASM_FUNCTION("f", ".cfi_remember_state\\n\\t.cfi_def_cfa_offset 8\\n\\t.cfi_restore_state");\n',
     'PIRN_ASM_FUNCTION("f", ".cfi_def_cfa_offset 8\\n\\t.cfi_remember_state\\n\\t.cfi_restore_state");\n'),
    (waits.waits, "src/sync/x.cpp", "w->timers.arm(limit, deadline, handle);\n", "arm(wait, limit, timers);  // w->timers.arm()\n"),
    (waits.waits, "src/fiber/suspend.cpp", "timers.arm(a, b, c);\ntimers.arm(d, e, f);\n", "timers.arm(a, b, c);\n"),
    (waits.waits, "src/sync/x.cpp", "self.begin(wait_kind::timed, epoch);\n", "begin_wait<false>(wait, entries);\n"),
    (waits.waits, "src/io/x.cpp", "if (self.open_to_stop(epoch)) {\n}\n", "suspend(self, options, entry);\n"),
    (waits.waits, "src/sync/x.cpp", "suspend_slow(wait, limit, publish);\n", "suspend(self, options, entry);\n"),
    (waits.waits, "src/sync/x.cpp", "here->queue.push_woken(f);\n", "schedule(*f, placement::front);\n"),
    (waits.waits, "src/fiber/scope.cpp", "home->inject(f);\n", "schedule(*f, placement::front);\n"),
    (waits.waits, "src/fiber/runtime.cpp", "w->io->interrupt_poll();\n", "w->idle->unpark(w->index);\n"),
    (waits.waits, "src/fiber/wait_set.cpp", "list->remove(node);\n", "list->remove_after_wait(lock, node);\n"),
    (prose.prose, HEADER, "/// Whoever waits is woken.\n", "/// Wakes the waiter.\nint who();  // `nobody` is a name here\n"),
    (prose.prose, HEADER, "int x;  // nobody reads it\n", "const char* x = \"nobody // who\";\n"),
    (prose.prose, HEADER, "/// Locks. What holds it\n/// waits.\n", "/// Locks what is free.\n"),
    (prose.prose, HEADER, "/// The same.\n", "/// At the same time.\n"),
    (prose.prose, HEADER, "/* It waits in\n   vain. */\n", "/* It waits in turn. */\n"),
    (prose.prose, HEADER, 'const char* x = "a lock that no"\n    "body has locked";\n',
     'const char* x = "unlock() called on a lock that is free";\nconst char* y = "nobody waits";\n'),
    (prose.prose, "src/sync/x.cpp", "#include <vector>\n", "// A vector.\n#include <vector>\n"),
    (public.documented, HEADER, "namespace pirn {\ntemplate <class T>\nclass x {};\n}\n",
     "namespace pirn {\n/// An x.\ntemplate <class T>\nclass x {};\nnamespace detail {\nclass y {};\n}\n}\n"),
    (public.documented, HEADER, "namespace pirn {\n" + "".join(f"/// An x.\nenum class x{i} {{ a }};\n" for i in range(public.MAX_TYPES + 1)) + "}\n",
     "namespace pirn {\n" + "".join(f"/// An x.\nusing x{i} = int;\n" for i in range(public.MAX_TYPES)) + "}\n"),
    (public.listed, public.PAGE, "# Types\n", public.page([])),
    (rules.text_of_all, "README.md", "x\n" * 601, "x\n" * 600),
    (rules.text_of_all, "dev", "cd /" + "root/x\n", 'cd "$dir/' + 'root"\n'),
    (rules.text_of_all, "src/x.cpp", "// TO" + "DO: later\n", "// done\n"),
    (rules.short_classes, "include/pirn/sync/x.hpp", "class x : y {\n" + "  // z\n" * 119 + "};\n",
     "class channel {\n" + "  // z\n" * 119 + "};\nclass x;\ntemplate <class T>\nclass x : y {\n" + "  // z\n" * 118 + "};\n"),
    (rules.short_classes, "src/sync/x.hpp", "struct [[nodiscard]] x final\n    : y {\n" + "\n" * 118 + "};\n",
     "extern template class x<y>;\n" + "int f();\n" * 120 + "}\n"),
    (rules.short_classes, "src/sync/x.hpp", "class alignas(y ? alignof(z) : 64) x {\n" + "\n" * 119 + "};\n",
     "class alignas(y ? alignof(z) : 64) channel {\n" + "\n" * 119 + "};\n"),
    (rules.formatting, "src/x.cpp", "int   x ;\n", "int x;\n"),
    (compilers.headers, HEADER, "#pragma once\ninline std::size_t x;\n", "#pragma once\n#include <cstddef>\ninline std::size_t x;\n"),
    (compilers.headers, "include/pirn/sim/x.hpp", "#pragma once\n#error\n", "#pragma once\n#if !PIRN_SIM\n#error\n#endif\n"),
    (compilers.headers, HEADER, "#pragma once\n#include <expected>\nstd::expected<int, int> x;\n", "#pragma once\n"),
    (compilers.weight, "include/pirn/sync/mutex.hpp", '#include "pirn/nowhere.hpp"\n', "#include <vector>\n"),
    (compilers.docs, "README.md", "```cpp\nint x = y;\n```\n", "```cpp\nint x = 1;\n```\n"),
    (compilers.docs, "README.md", "<!-- body -->\n```cpp\nf();\n```\n", "<!-- body -->\n```cpp\nint x = 1;\n++x;\n```\n"),
    (compilers.docs, "README.md", "<!-- body -->\n```cpp\nstd::puts(\"\");\n```\n",
     "Blocks without a `main` need `<cstdio>`.\n\n<!-- body -->\n```cpp\nstd::puts(\"\");\n```\n"),
    (compilers.docs, "README.md", "<!-- from: README.txt -->\n```cpp\nint x;\n```\n", "```sh\nint x = y;\n```\n"),
    (compilers.tidy, "src/x.cpp",
     "#include <utility>\n#include <string>\nauto f(std::string s) { auto t = std::move(s); return s + t; }\n",
     "int f(int x) { return x; }\n"),
]

FAULTS = """source = "src/sync/x.cpp"

[[fault]]
name = "x_is_two"
why = "a user gets 2"
test = "sync_x_test"
find = 'return 1;'
replace = 'return 2;'

[[fault]]
name = "x_and_y"
why = "both are wrong"
test = "sync_x_test"
[[fault.edit]]
find = 'x() {'
replace = 'z() {'
[[fault.edit]]
file = "include/pirn/sync/detail/y.hpp"
find = 'int y;'
replace = ''
"""


def run(jobs: int) -> list[str]:
    findings = []
    for check, path, faulty, sound in CASES:
        for text, expected in ((faulty, True), (sound, False)):
            with tempfile.TemporaryDirectory() as scratch:
                file = Path(scratch) / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
                found = check(Tree(Path(scratch), jobs))
                if bool(found) != expected:
                    findings.append(f"the check {check.__name__} {'misses' if expected else 'refuses'}: {text!r} {found}")
    return findings + paste_is_right(jobs) + tables_are_compared(jobs) + faults_are_checked(jobs) + figures_are_compared(jobs)


def paste_is_right(jobs: int) -> list[str]:
    """A stale block and an empty one take the example's text, and nothing else changes."""
    findings = []
    block = "text\n\n<!-- from: x.cpp -->\n```cpp\n%s```\n\nmore\n"
    for old in ("", "int stale;\n"):
        with tempfile.TemporaryDirectory() as scratch:
            (Path(scratch) / "x.cpp").write_text("int x;\n")
            (Path(scratch) / "README.md").write_text(block % old)
            compilers.paste(Tree(Path(scratch), jobs), quiet=True)
            pasted = (Path(scratch) / "README.md").read_text()
            if pasted != block % "int x;\n":
                findings.append(f"pasting over {old!r} gives {pasted!r}")
    return findings


def tables_are_compared(jobs: int) -> list[str]:
    """A table of members is right as it stands, and not when the type has another member, default, order or none."""
    header = """struct limits {
  std::string name = "x";  ///< a name; of what = 1
  std::size_t most = std::size_t{16} * 1024;
  std::function<void(const int&)> told = {};
  time_span every = std::chrono::seconds(10);
  [[nodiscard]] std::optional<int> find(int a) const noexcept { return a == 1 ? 2 : std::optional<int>(); }
 private:
  int hidden_ = 3;
};
"""
    table = """<!-- members of: include/x.hpp limits -->
| member | default | |
|---|---|---|
| `name` | `"x"` | |
| `most` | 16 KiB | |
| `told` | none | |
| `every` | 10 s | |
| `find(a)` | | |
"""
    findings = []
    for old, new, sound in [("", "", True), ("16} *", "17} *", False), ("(10)", "(11)", False), ('"x"', '"y"', False),
                            ("struct limits {", "struct limits {\n  int other = 1;", False), ("limits", "bounds", False),
                            ("private", "public", False), ("  time_span every = std::chrono::seconds(10);\n", "", False)]:
        with tempfile.TemporaryDirectory() as scratch:
            (Path(scratch) / "include").mkdir()
            (Path(scratch) / "include/x.hpp").write_text(header.replace(old, new))
            (Path(scratch) / "README.md").write_text(table)
            found = tables.tables(Tree(Path(scratch), jobs))
            if bool(found) == sound:
                findings.append(f"the check tables, with {new!r} for {old!r}: {found}")
    return findings


def faults_are_checked(jobs: int) -> list[str]:
    """Faults apply as they stand, and not where a text is gone or occurs twice, a key is wrong or a name is taken."""
    findings = []
    for old, new, sound in [("", "", True), ("return 1", "return 3", False), ("'x() {'", "'{'", True), ("'x() {'", "' '", False),
                            ("x_and_y", "x_is_two", False), ("sync/x.cpp", "fiber/x.cpp", False), ("why =", "reason =", False),
                            ("why =", "# why =", False), ("x_is_two", "x-is-two", False), ("find = 'int y;'", "", False),
                            ("detail/y.hpp", "z.hpp", False), ("'return 2;'", "'return 1;'", False), ("[[fault]]", "[fault]", False),
                            ("find = 'x() {'", "find = 'int x()'\nreplace = ''\n[[fault.edit]]\nfind = 'x() {'", False),
                            ("'z() {'", "'z() {'\ntimeout = 3", False), ("'return 2;'", "'return 2;'\ntimeout = 'x'", False)]:
        with tempfile.TemporaryDirectory() as scratch:
            for name, text in (("src/sync/x.cpp", "int x() { return 1; }\n"), ("include/pirn/sync/detail/y.hpp", "int y;\n"),
                               ("tests/faults/sync/x.toml", FAULTS.replace(old, new, 1))):
                (Path(scratch) / name).parent.mkdir(parents=True, exist_ok=True)
                (Path(scratch) / name).write_text(text)
            found = mutants.mutants(Tree(Path(scratch), jobs))
            if bool(found) == sound:
                findings.append(f"the check mutants, with {new!r} for {old!r}: {found}")
    return findings


def figures_are_compared(jobs: int) -> list[str]:
    """The tables of figures are right as they are made, and not when a figure is changed or the marks are gone."""
    page = figures.page
    records = page.Records([page.Record({"processor": "a"}, {"yield": {"date": "2026-01-01", "notes": {}, "counts": [], "skipped": [], "rows": [
        {"workload": "yield", "impl": impl, "params": {}, "unit": "ns", "median": median, "min": 1.0, "max": 9.0, "rounds": 1}
        for impl, median in (("pirn", 1.5), ("go", 60.0))]}})])
    findings = []
    for name, old, new, sound in [("README.md", "", "", True), ("README.md", "1.5", "1.4", False), ("README.md", "<!-- end", "<!-- END", False),
                                  ("docs/performance.md", "60.00 (40.00)", "60.00 (41.00)", False),
                                  ("docs/reproduction.md", "not measured yet", "same sign", False)]:
        with tempfile.TemporaryDirectory() as scratch:
            (Path(scratch) / "docs").mkdir()
            records.write(Path(scratch) / "docs/performance.json")
            (Path(scratch) / "README.md").write_text(page.with_table("".join(page.README_MARKS), records))
            (Path(scratch) / "docs/performance.md").write_text(page.summary(records))
            (Path(scratch) / "docs/reproduction.md").write_text(page.reproduction.page(records, page.machine_list(records)))
            file = Path(scratch) / name
            file.write_text(file.read_text().replace(old, new, 1))
            found = figures.figures(Tree(Path(scratch), jobs))
            if bool(found) == sound:
                findings.append(f"the check figures, with {new!r} for {old!r}: {found}")
    return findings
