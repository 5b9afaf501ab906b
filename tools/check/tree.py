"""The files of a source tree and which layer each belongs to."""

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

LAYERS = ["detail", "context", "stack", "coro", "fiber", "sync", "io", "net", "http", "rpc"]
CXX20_LAYERS = {"detail", "context", "stack", "coro"}
CXX_SUFFIXES = {".hpp", ".cpp", ".h"}


class Tree:
    """A folder of sources: this repository, or a made-up one in a self-test."""

    def __init__(self, root: Path, jobs: int = 1, everything: bool = True):
        self.root = root
        self.jobs = jobs
        self.everything = everything
        self.paths = self._list()

    def _list(self) -> list[str]:
        if (self.root / ".git").exists():
            names = self.git("ls-files", "-co", "--exclude-standard", "-z").split("\0")
        else:
            names = [os.path.relpath(os.path.join(folder, name), self.root)
                     for folder, _, found in os.walk(self.root) for name in found]
        return sorted(n for n in names if n and not n.startswith("build/") and (self.root / n).is_file())

    def git(self, *arguments: str) -> str:
        return subprocess.run(["git", "-C", str(self.root), *arguments], check=True, capture_output=True, text=True).stdout

    def text(self, path: str) -> str:
        return (self.root / path).read_text(encoding="utf-8", errors="replace")

    def cxx(self, *folders: str) -> list[str]:
        """Our C++ files, below the given folders or anywhere."""
        return [p for p in self.paths
                if Path(p).suffix in CXX_SUFFIXES and (not folders or p.startswith(tuple(f + "/" for f in folders)))]

    def changed(self) -> set[str]:
        """What differs from origin/main and what the last commit changed, with all that is not committed."""
        names = set()
        for base in ("origin/main", "HEAD~"):
            try:
                names |= set(self.git("diff", "--name-only", "-z", base).split("\0"))
            except subprocess.CalledProcessError:
                continue  # no such commit here
        if not names:
            return set(self.paths)
        return (names | set(self.git("ls-files", "-o", "--exclude-standard", "-z").split("\0"))) & set(self.paths)

    def run_each(self, commands: list[tuple[str, list[str]]]) -> list[str]:
        """Runs (title, command) pairs side by side; a failure becomes a finding with its output."""

        def run(pair: tuple[str, list[str]]) -> str:
            title, command = pair
            done = subprocess.run(command, cwd=self.root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, errors="replace")
            return f"{title}\n{shorten(done.stdout)}" if done.returncode else ""

        with ThreadPoolExecutor(self.jobs) as pool:
            return [finding for finding in pool.map(run, commands) if finding]


def shorten(output: str, lines: int = 25) -> str:
    kept = [line for line in output.splitlines() if line.strip()]
    return "\n".join("    " + line for line in kept[:lines] + ([f"... {len(kept) - lines} more"] if len(kept) > lines else []))


def layer_of(path: str) -> str | None:
    """The layer whose folder a file lies in; None for what stands beside the layers."""
    parts = path.split("/")
    if parts[0] == "include" and len(parts) > 3:
        name = parts[2]
    elif parts[0] in ("src", "tests") and len(parts) > 2:
        name = parts[1]
    else:
        return None
    return name if name in LAYERS else None


def standard_of(path: str) -> str:
    return "-std=c++20" if layer_of(path) in CXX20_LAYERS else "-std=c++23"


def defines_of(path: str) -> list[str]:
    """The macros that the build defines for a file."""
    if path.endswith("/bounded/assumptions.cpp"):
        return ['-DPIRN_STACK_ASSUMPTIONS_FILE=""']
    return ["-DPIRN_SIM=1"] if "/sim/" in path or path.endswith("/platform_checked.hpp") else []


def without_comments(text: str, keep_strings: bool = False) -> str:
    """Blanks comments (and string contents), so that a rule about code does not fire on prose. Lines stay in place."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)

    def blank(match: re.Match) -> str:
        token = match.group(0)
        if token[0] in "\"'":
            return token if keep_strings else token[0] * 2
        return "\n" * token.count("\n")

    return pattern.sub(blank, text)
