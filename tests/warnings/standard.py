"""standard.py COMPILER INCLUDE: each public header that needs C++23 says so in C++20, and gives no other error."""

import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

LAYERS = ["fiber", "sync", "io", "net", "http"]
SAYS = "need C++23 (-std=c++23)"


def main() -> int:
    compiler, include = sys.argv[1], Path(sys.argv[2])
    headers = sorted(h for layer in LAYERS for h in (include / "pirn" / layer).rglob("*.hpp") if h.parent.name != "detail")

    def finding(header: Path) -> str:
        with tempfile.TemporaryDirectory() as scratch:
            program = Path(scratch) / "program.cpp"
            program.write_text(f'#include "{header.relative_to(include)}"\nint main() {{}}\n')
            result = subprocess.run([compiler, "-std=c++20", f"-I{include}", "-E", "-o", "/dev/null", str(program)],
                                    capture_output=True, text=True, check=False)
        errors = [line for line in result.stderr.split("\n") if " error: " in line]  # the #error, and a missing file
        if result.returncode == 0 or len(errors) != 2 or SAYS not in errors[0]:
            return f"{header}: in C++20 {compiler} says\n{result.stderr[:2000]}"
        return ""

    with ThreadPoolExecutor(2) as pool:
        findings = [text for text in pool.map(finding, headers) if text]
    print("\n".join(findings))
    return 1 if findings or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
