"""user_program.py COMPILER INCLUDE LEVEL...: compiles user_program.cpp below all public headers as users do, at these
levels of optimization, with -Wall -Wextra -Wshadow. Only this shows warnings in header code that is inlined into a program."""

import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Headers of explorations, which are separate builds, and headers that need those of Boost.
LEFT_OUT = ("pirn/sim/", "pirn/net/expert/asio_stream.hpp", "pirn/http/")


def public_headers(include: Path) -> list[str]:
    found = [str(h.relative_to(include)) for h in sorted([*include.glob("pirn/*/*.hpp"), *include.glob("pirn/*/expert/*.hpp")])]
    return [h for h in found if not h.startswith(LEFT_OUT) and "/detail/" not in h]


def main() -> int:
    compiler, include, levels = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / "user_program.cpp"
        lines = [f'#include "{h}"' for h in public_headers(include)]
        program.write_text("\n".join([*lines, '#line 1 "user_program.cpp"', (HERE / "user_program.cpp").read_text()]))

        def compile_at(level: str) -> subprocess.CompletedProcess:
            return subprocess.run(
                [compiler, "-std=c++23", level, "-Wall", "-Wextra", "-Wshadow", "-Werror", f"-I{include}", "-c", str(program), "-o",
                 str(Path(scratch) / f"program{level}.o")], capture_output=True, text=True, check=False)

        with ThreadPoolExecutor(2) as pool:
            results = list(pool.map(compile_at, levels))
    for level, result in zip(levels, results):
        if result.returncode != 0:
            print(f"{compiler} {level}:\n{result.stderr}")
    return 1 if any(result.returncode != 0 for result in results) or not levels else 0


if __name__ == "__main__":
    sys.exit(main())
