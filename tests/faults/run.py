"""./dev test --mutants: applies each known fault to a copy of the tree and checks that the named test goes red.

Before that, the test must be green without any fault. faults.py describes the form of a fault.
"""

import argparse
import itertools
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from faults import Fault, read_all

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# Otherwise the removal of a fault would compile everything again that it had reached, and so would the next run.
CACHED = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache", "-DCMAKE_C_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []


def needs_plugin(fault: Fault) -> bool:
    return fault.test.startswith("compiler_")


def folder_of(fault: Fault) -> str:
    return fault.preset + ("-plugin" if needs_plugin(fault) else "")


class Workshop:
    """A copy of the sources, built once per preset and then only as far as a fault reaches. Each worker has a separate
    copy, since most of a fault's time is one compiler at work on one file."""

    def __init__(self, folder: Path, jobs: int):
        self.folder, self.jobs = folder, jobs
        self.source = folder / "src"
        self.configured: set[str] = set()
        self.log = folder / "last.log"
        self.environment = dict(os.environ, CCACHE_DIR=str(folder.parent / "ccache"), CCACHE_BASEDIR=str(folder),
                                CCACHE_NOHASHDIR="1", CCACHE_MAXSIZE="20G")
        self.refresh()

    def refresh(self) -> None:
        """Makes the copy equal to the tree without touching files that are already equal."""
        listing = ["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard", "-z"]
        if (ROOT / ".git").exists():
            names = subprocess.run(listing, check=True, capture_output=True, text=True).stdout.split("\0")
        else:
            names = [str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if p.is_file()]
        names = {n for n in names if n and not n.startswith("build/") and (ROOT / n).is_file()}
        for name in names:
            self.restore(name)
        for path in list(self.source.rglob("*")):
            if path.is_file() and str(path.relative_to(self.source)) not in names:
                path.unlink()

    def restore(self, name: str) -> None:
        original, copy = ROOT / name, self.source / name
        if not original.exists():
            copy.unlink(missing_ok=True)
            return
        content = original.read_bytes()
        if not copy.exists() or copy.read_bytes() != content:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)
            copy.chmod(original.stat().st_mode)

    def call(self, *command: str) -> bool:
        with self.log.open("w") as log:
            return subprocess.run(command, cwd=self.source, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                  env=self.environment).returncode == 0

    def build(self, fault: Fault) -> bool:
        binary = str(self.folder / folder_of(fault))
        if folder_of(fault) not in self.configured:
            # No cache keeps the files that the plugin writes beside an object, so a build has either a cache or the
            # plugin.
            options = [] if needs_plugin(fault) else ["-DPIRN_PLUGIN=OFF", *CACHED]
            if not self.call("cmake", "--preset", fault.preset, "-S", str(self.source), "-B", binary, *options):
                return False
            self.configured.add(folder_of(fault))
        return self.call("cmake", "--build", binary, "-j", str(self.jobs), "--target", fault.target)

    def apply(self, fault: Fault) -> None:
        for name, text in fault.apply(self.source).items():
            (self.source / name).write_text(text, encoding="utf-8")

    def take_back(self, fault: Fault) -> None:
        for edit in fault.edits:
            self.restore(edit.file)

    def run(self, fault: Fault, timeout: int) -> tuple[str, str]:
        """Returns ('green' | 'red' | 'absent' | 'skipped', output), of the test after the fixtures that it requires. Runs
        without ctest, which would wait as long as for any test."""
        listing = subprocess.run(["ctest", "--test-dir", str(self.folder / folder_of(fault)), "--show-only=json-v1",
                                  "-R", f"^{re.escape(fault.test)}$"], capture_output=True, text=True)
        entries = json.loads(listing.stdout)["tests"] if listing.returncode == 0 else []
        entries.sort(key=lambda entry: entry["name"] == fault.test)  # what sets up its fixtures is listed too
        if not entries or entries[-1]["name"] != fault.test or any("command" not in entry for entry in entries):
            return "absent", ""
        for entry in entries:
            verdict, output = self.run_entry(entry, timeout)
            if verdict != "green":
                break
        return verdict, output

    def run_entry(self, entry: dict, timeout: int) -> tuple[str, str]:
        properties = {p["name"]: p["value"] for p in entry.get("properties", [])}
        environment = dict(os.environ)
        environment.update(e.split("=", 1) for e in properties.get("ENVIRONMENT", []))
        process = subprocess.Popen(entry["command"], cwd=properties.get("WORKING_DIRECTORY"), env=environment, text=True,
                                   errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            return "red", output + "\n(hung)"
        if process.returncode == properties.get("SKIP_RETURN_CODE", 0) != 0:
            return "skipped", output
        return ("green" if process.returncode == 0 else "red"), output


def try_fault(shop: Workshop, fault: Fault) -> str:
    """Returns why this fault was not caught; empty if its test caught it."""
    try:
        shop.apply(fault)
    except ValueError as error:
        return str(error)
    if not shop.build(fault):
        return "does not build with the fault:\n" + shop.log.read_text()[-2000:]
    verdict, output = shop.run(fault, fault.timeout)
    if verdict != "red":
        return f"SURVIVED: {fault.test} is {verdict}"
    if fault.shows and not re.search(fault.shows, output):
        return f"red, but without printing {fault.shows!r}:\n{output[-2000:]}"
    return ""


def try_group(shop: Workshop, group: list[Fault]) -> Iterator[tuple[Fault, str | None, float]]:
    """Yields each fault of one test, why it was not caught (None where this machine cannot run the test), and the
    seconds."""
    begin = time.monotonic()
    first = group[0]
    verdict, output = shop.run(first, 10 * first.timeout) if shop.build(first) else ("not built", shop.log.read_text())
    unsound = {"green": "", "skipped": None}.get(
        verdict, f"{first.test} without any fault is {verdict}\n{output[-2000:]}")
    for fault in group:
        problem = unsound
        if problem == "":
            try:
                problem = try_fault(shop, fault)
            finally:
                shop.take_back(fault)
        yield fault, problem, time.monotonic() - begin
        begin = time.monotonic()


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev test --mutants")
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("-R", dest="names", action="append", default=[], help="only the faults whose <layer>/<source>/<name> matches")
    options = parser.parse_args()

    faults, problems = read_all(HERE)
    if problems:
        sys.exit("./dev test --mutants: " + "\n".join(problems))
    faults = [f for f in faults if not options.names or any(re.search(n, f.title) for n in options.names)]
    shops = [Workshop(options.build.resolve() / str(i), 1) for i in range(options.jobs)]
    passed, failed, skipped, printing = 0, 0, [], threading.Lock()
    groups: queue.SimpleQueue[list[Fault]] = queue.SimpleQueue()

    def work(shop: Workshop) -> None:
        nonlocal passed, failed
        while True:
            try:
                group = groups.get_nowait()
            except queue.Empty:
                return
            for fault, problem, seconds in try_group(shop, group):
                with printing:
                    if problem is None:
                        skipped.append(f"{fault.title}: {fault.test} ({fault.preset})")
                        continue
                    failed, passed = failed + bool(problem), passed + (not problem)
                    print(f"{'FAILED' if problem else 'caught':7}{fault.title:56} by {fault.test} ({fault.preset})"
                          f" {seconds:5.0f} s", flush=True)
                    print(f"       {fault.why}" + (f"\n  {problem}" if problem else ""), flush=True)

    def by_test(fault: Fault) -> tuple[str, str]:
        return fault.preset, fault.test

    for alone in (False, True):
        for _, group in itertools.groupby(sorted((f for f in faults if bool(f.alone) == alone), key=by_test), key=by_test):
            groups.put(list(group))
        workers = [threading.Thread(target=work, args=(shop,)) for shop in (shops[:1] if alone else shops)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    for name in skipped:
        print(f"skipped: {name} cannot be run here")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
