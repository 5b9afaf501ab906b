"""Finds and builds the programs of the bench.

A workload is a folder beside this file, an implementation is a file in it: C++ by the tree's CMake (preset bench), Go,
Rust, Haskell and C# by their own tools, shell and Erlang scripts unchanged. An implementation that cannot be built is
skipped with the reason.
"""

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import servers

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BUILD = Path(os.environ.get("PIRN_BUILD", ROOT / "build")) / "bench"
RIVALS = BUILD / "rivals"
# As BUILD, but with PIRN_KEEP_FP_WORDS, in which every context has separate control words, for the workloads that
# compare both.
OWN_WORDS_BUILD = BUILD.with_name(f"{BUILD.name}-own-words")
WITH_OWN_WORDS = ("aco",)
# As BUILD, but by gcc, for rows that show what its users get. They are named as the others, with -gcc.
GCC = "g++-12"
GCC_BUILD = BUILD.with_name(f"{BUILD.name}-gcc")
WITH_GCC = {"yield": ("pirn", "pirn-co"), "spawn": ("pirn",), "sum": ("pirn", "pirn-frame", "pirn-foreach"),
            "hanoi": ("pirn", "pirn-frame", "pirn-foreach"), "client": ("classic", "pirn-attribute")}

WORKLOADS = {
    "switch": "one switch between two contexts that run different functions",
    "yield": "one yield among 10 fibers",
    "spawn": "one fiber created, run and joined; in batches of 1000 or one at a time",
    "http-hello": "GET /hello from a server on one core, over many connections in a closed loop; per second of its CPU time",
    "echo": "messages sent back by a server on one core, over many connections in a closed loop; per second of its CPU time",
    "unix": "as echo, over Unix sockets",
    "store": "the key-value store of callbacks as a server, whose sets are on the disk before they are answered; per second of its CPU time",
    "udp": "datagrams sent back by a server on one core, 32 under way of each client; per second of its CPU time",
    "idle-connections": "bytes of memory for each idle connection of an echo server, of the process and of the kernel",
    "file": "reads of a file: 4 KiB at random, from the page cache or with O_DIRECT; 1 MiB one after the other; beside others",
    "million": "a million fibers suspended at once: memory and time for each",
    "transfer": "one switch that hands over two values and gets two back, in a ping-pong of two contexts",
    "sum": "one element of a sequence, N down to 1, handed to a consumer that adds it up; the producer is a for or a while",
    "hanoi": "one move of the Tower of Hanoi, handed to a consumer from inside a recursion",
    "tree-walk": "one element of a tree of a million nodes, in order; or one pair of leaves of two trees that are compared",
    "coro-spawn": "one coroutine without a scheduler created, run to its end and destroyed",
    "frames": "one coroutine that another one awaits, of chains that end without a wait: its frame made and destroyed",
    "locals": "one of the caller's own variables found and changed: of a coroutine, a fiber or a thread",
    "write_fully": "one 800-byte step of 10 senders of 100 MB each, with a wait for readiness before it",
    "callbacks": "requests per second of a key-value store in memory whose pages come from a simulated storage",
    "ring": "operations per second, one message passed on, in cycles of N coroutines that send messages around; N*R*M in all",
    "threadring": "one hop of a token around a ring of processes, one after the other",
    "chan": "one message through a bounded channel",
    "mutex": "one mutex of many locked and unlocked, as sysbench does it",
    "threads": "one mutex of few locked and unlocked, with a yield between, as sysbench does it",
    "condvar": "one element through a bounded buffer guarded by a mutex and two condition variables",
    "biased": "one use of a lock, or one element through a buffer, by fibers that stay on the worker of what is locked",
    "queue": "one of a million nodes through one queue that many share",
    "saved-bytes": "bytes that a fiber or coroutine keeps where it suspends, at each point",
    "spread": "one yield at the bottom of a chain of calls, and the chain, each of whose functions has values to keep",
    "spread-counts": "what a yield of spread executes, the code of its chain, and what a fiber keeps at it",
    "yield-breakdown": "one yield among 10 fibers, with one optimization after the other",
    "timers": "one of a million sleeps at once: begun, cancelled, and ended in time",
    "fib": "one fiber of those that compute a Fibonacci number, one for each call",
    "sort": "one number sorted by a quicksort with a fiber for each part above a cut-off",
    "idle": "use of a core, in percent, while a million fibers wait",
    "wake-latency": "from the wake-up of a fiber on another core until it runs: percentiles",
    "core-to-core": "one number handed from one of two threads on two cores to the other, by plain loads and stores",
    "trim": "memory of fibers that wait before and after their stacks are trimmed, and what that costs",
    "fib40": "one call of a fork-join, in fib(40) by its recursive definition",
    "skynet": "one leaf of a tree of a million, ten children to a node, that return their numbers",
    "nqueens": "one queen placed in the search for all solutions on a board",
    "matmul": "one multiplication and addition in the recursive product of two matrices",
    "explore": "scheduling points and whole executions that an exploration of two fibers at a mutex makes in a second",
    "aco": "libaco's benchmark: many coroutines on one stack created, resumed and destroyed, and the peak of memory",
    "memory": "bytes of memory per suspended unit, a million and ten million at once",
    "client": "one request of an HTTP or an RPC client, many fibers on one core over a network in memory",
    "clock": "the clock frequency, and an empty loop that clobbers what a switch clobbers",
}
# Workloads that have the implementations of another folder, beside those of their own if they have one.
SHARED = {"unix": "echo", "idle-connections": "echo"}
SCRIPTS = (".sh", ".escript")
SUFFIXES = (".cpp", ".go", ".rs", ".hs", ".cs", *SCRIPTS)


@dataclass
class Program:
    """One implementation of one workload."""

    workload: str
    impl: str
    command: list[str] = field(default_factory=list)
    skipped: str = ""  # the reason, when it cannot run
    outside: bool = False  # from --rivals
    note: str = ""  # what its rows say of it beside what the program says
    source: str = ""  # the implementation of which it is a build, where that has another name
    revision: str = ""  # what an outside program was built of
    shown: set[str] = field(default_factory=set)  # the names of its rows
    beyond: set[str] = field(default_factory=set)  # the settings that it does not support

    @property
    def name(self) -> str:
        return f"{self.workload}/{self.impl}"

    @property
    def command_with_own_words(self) -> list[str]:
        """For a program from outside this is the command itself, which reads its inputs. An older pirn has one build
        only."""
        other = self.outside or "@" in self.impl
        return self.command if other else [str(OWN_WORDS_BUILD / "rivals" / self.workload / self.impl)]


def folders(workload: str) -> list[str]:
    return [workload, *([SHARED[workload]] if workload in SHARED else [])]


def sources(workloads) -> dict[tuple[str, str], Path]:
    """Returns the file of every implementation of the workloads, pirn's own first."""
    found = {}
    for workload in workloads:
        files = [path for folder in folders(workload) for path in (HERE / folder).glob("*") if path.suffix in SUFFIXES]
        for path in sorted(files, key=lambda path: (path.stem != "pirn", not path.stem.startswith("pirn-"), path.stem)):
            found[workload, path.stem] = path
    return found


def outside(folder: Path, workloads) -> list[Program]:
    """Returns the executables of a folder, each of which is tried with every workload. A file NAME.revision beside NAME
    says what that was built of."""
    def revision(path: Path) -> str:
        note = path.with_name(f"{path.name}.revision")
        return note.read_text().strip() if note.exists() else ""

    files = sorted(path for path in folder.iterdir() if path.is_file() and os.access(path, os.X_OK))
    return [Program(workload, path.name, [str(path.resolve())], outside=True, revision=revision(path))
            for workload in workloads for path in files]


def against(revision: str, workloads) -> list[Program]:
    """Returns pirn's own implementations of the workloads as of a revision, built in a separate folder.

    A RuntimeError names what that revision lacks.
    """
    found = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet", "--short", f"{revision}^{{commit}}"],
                           capture_output=True, text=True)
    if found.returncode:
        raise RuntimeError(f"no revision {revision} in this repository")
    folder = BUILD / "against" / found.stdout.strip()
    source = folder / "source"
    if not (source / "bench").is_dir():
        source.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(["git", "-C", str(ROOT), "archive", revision], check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", str(source)], input=archive, check=True)
    files = {(workload, path.stem): path for workload in workloads for name in folders(workload)
             for path in sorted((source / "bench" / name).glob("*.cpp"), key=lambda path: (path.stem != "pirn", path.stem))
             if is_ours(path.stem)}
    if reason := _run(["cmake", "--preset", "bench", "-S", str(source), "-B", str(folder / "build")], cwd=source):
        raise RuntimeError(f"{revision} cannot be configured: {reason}")
    failed = _build_targets(dict.fromkeys(map(_cmake_target, files.values())), folder / "build")
    return [Program(workload, f"{impl}@{revision}", [str(binary(path, folder / "build"))],
                    skipped=f"does not build: {failed[_cmake_target(path)]}" if _cmake_target(path) in failed else "")
            for (workload, impl), path in files.items()]


def binary(path: Path, build: Path = BUILD) -> Path:
    """Returns the program that a source file becomes."""
    return build / "rivals" / path.parent.name / path.stem


def is_ours(impl: str) -> bool:
    return impl == "pirn" or impl.startswith("pirn-")


def build(workloads, ours_only: bool = False) -> list[Program]:
    """Builds the implementations of the workloads that are in the tree, or pirn's own."""
    files = {key: path for key, path in sources(workloads).items() if not ours_only or is_ours(key[1])}
    reasons = _build_drivers(files)
    for suffixes, how in (((".cpp",), _build_cpp), ((".go",), _build_go), ((".rs",), _build_rust),
                          ((".hs",), _build_haskell), ((".cs",), _build_csharp), (SCRIPTS, _build_script)):
        chosen = {key: path for key, path in files.items() if path.suffix in suffixes}
        if chosen:
            failed = how(dict.fromkeys(chosen.values()))
            reasons |= {key: failed[path] for key, path in chosen.items() if path in failed}
    programs = []
    for (workload, impl), path in files.items():
        reason = reasons.get((workload, impl), "")
        program = path if path.suffix in SCRIPTS else binary(path)
        command = ["mono", f"{program}.exe"] if path.suffix == ".cs" else [str(program)]
        programs.append(Program(workload, impl, command, skipped=reason))
    return programs + ([] if ours_only else _build_by_gcc(files))


def _build_by_gcc(files) -> list[Program]:
    """Builds the programs of WITH_GCC among these files. Programs of the compiler's plugin, of C and of other libraries
    are not among them."""
    chosen = {(workload, impl): path for (workload, impl), path in files.items() if impl in WITH_GCC.get(workload, ())}
    if not chosen:
        return []
    if not shutil.which(GCC):
        reasons = dict.fromkeys(chosen.values(), f"{GCC} is not installed")
    elif reason := _configure(GCC_BUILD, f"-DCMAKE_CXX_COMPILER={GCC}", "-DPIRN_PLUGIN=OFF", "-DCMAKE_COMPILE_WARNING_AS_ERROR=OFF",
                              "-DCMAKE_EXE_LINKER_FLAGS=", "-DCMAKE_SHARED_LINKER_FLAGS="):
        reasons = dict.fromkeys(chosen.values(), f"CMake: {reason}")
    else:
        reasons = _build_cpp_targets(list(chosen.values()), GCC_BUILD)
    return [Program(workload, f"{impl}-gcc", [str(binary(path, GCC_BUILD))], skipped=reasons.get(path, ""), note=f"by {GCC}",
                    source=impl) for (workload, impl), path in chosen.items()]


def _run(command, **options):
    """Returns the reason why a command failed, or an empty string."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, **options)
    except FileNotFoundError:
        return f"{command[0]} is not installed"
    if done.returncode == 0:
        return ""
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"\berror\b|undefined|not found", line, re.IGNORECASE)]
    return (telling or lines or ["no output"])[0][:200]


def _cmake_target(path: Path) -> str:
    return f"bench_{path.parent.name}_{path.stem}"


def _configure(folder: Path = BUILD, *options) -> str:
    return _run(["cmake", "--preset", "bench", "-S", str(ROOT), "-B", str(folder), *options], cwd=ROOT)


def _build_targets(targets, folder: Path = BUILD) -> dict[str, str]:
    """Returns the reason for every target that does not build."""
    command = ["cmake", "--build", str(folder), "-j", str(os.cpu_count()), "--target"]
    if not targets or not _run(command + list(targets) + ["--", "-k", "0"]):
        return {}
    return {target: reason for target in targets if (reason := _run(command + [target]))}


def _build_drivers(files) -> dict:
    """Builds the other side of servers."""
    targets = {key: f"bench_{servers.DRIVERS[key[0]]}" for key in files if servers.DRIVERS.get(key[0], ".py")[-3:] != ".py"}
    if reason := targets and _configure():
        return {key: f"CMake: {reason}" for key in targets}
    failed = _build_targets(dict.fromkeys(targets.values()))
    return {key: f"its driver does not build: {failed[target]}" for key, target in targets.items() if target in failed}


# Each of these returns the reason for every file that it cannot build.


def _build_cpp(files) -> dict:
    both = [path for path in files if path.parent.name in WITH_OWN_WORDS]
    if reason := _configure() or (both and _configure(OWN_WORDS_BUILD, "-DPIRN_KEEP_FP_WORDS=ON")):
        return {path: f"CMake: {reason}" for path in files}
    reasons = _build_cpp_targets(files)
    return reasons | _build_cpp_targets([path for path in both if path not in reasons], OWN_WORDS_BUILD)


def _build_cpp_targets(files, folder: Path = BUILD) -> dict:
    """Builds the programs of these files in a folder that CMake has configured."""
    reasons = {}
    for path in files:
        note = binary(path, folder).with_name(f"{path.stem}.skipped")
        if note.exists():
            reasons[path] = note.read_text()
    failed = _build_targets([_cmake_target(path) for path in files if path not in reasons], folder)
    for path in files:
        if _cmake_target(path) in failed:
            reasons[path] = f"does not build: {failed[_cmake_target(path)]}"
    return reasons


def _build_go(files) -> dict:
    if not shutil.which("go"):
        return dict.fromkeys(files, "go is not installed")
    environment = dict(os.environ, CGO_ENABLED="0", GOTOOLCHAIN="local")
    reasons = {}
    for path in files:
        target = binary(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        command = ["go", "build", "-o", str(target), str(path.relative_to(HERE))]
        if reason := _run(command, cwd=HERE, env=environment):
            reasons[path] = f"does not build: {reason}"
    return reasons


def _build_rust(files) -> dict:
    if not shutil.which("cargo"):
        return dict.fromkeys(files, "cargo is not installed")
    folder = BUILD / "cargo"
    command = ["cargo", "build", "--quiet", "--release", "--target-dir", str(folder)]
    names = {path: f"{path.parent.name}-{path.stem}" for path in files}
    for name in names.values():
        command += ["--bin", name]
    if (reason := _run(command, cwd=HERE)) and _run(command + ["--offline"], cwd=HERE):
        return dict.fromkeys(files, f"does not build: {reason}")
    for path, name in names.items():
        binary(path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(folder / "release" / name, binary(path))
    return {}


def _build_haskell(files) -> dict:
    reasons = {}
    for path in files:
        target = binary(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        command = ["ghc", "-v0", "-O2", "-outputdir", str(BUILD / "ghc" / path.parent.name), "-o", str(target), str(path)]
        if reason := _run(command):
            reasons[path] = reason if reason.endswith("is not installed") else f"does not build: {reason}"
    return reasons


def _build_csharp(files) -> dict:
    missing = [name for name in ("mcs", "mono") if not shutil.which(name)]
    reasons = dict.fromkeys(files, f"{missing[0]} is not installed") if missing else {}
    for path in files if not missing else ():
        target = binary(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if reason := _run(["mcs", "-optimize+", f"-out:{target}.exe", str(path), str(HERE / "harness/harness.cs")]):
            reasons[path] = f"does not build: {reason}"
    return reasons


def _build_script(files) -> dict:
    """Returns why scripts cannot run. Their heads name their needs: `needs: command NAME` or `needs: target NAME`."""
    reasons = {}
    for path in files:
        for kind, name in re.findall(r"^(?:#|%%) needs: (command|target) (\S+)$", path.read_text(), re.MULTILINE):
            if kind == "command" and not shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"):
                reasons[path] = f"{name} is not installed"
            if kind == "target" and (reason := _configure() or _build_targets([name]).get(name)):
                reasons[path] = f"does not build: {reason}"
    return reasons


def parse_rows(text: str) -> list[dict]:
    """Returns the rows of a program's output: one JSON object a line, or one JSON array."""
    try:
        whole = json.loads(text)
        return [row for row in whole if isinstance(row, dict)] if isinstance(whole, list) else [whole]
    except ValueError:
        pass
    rows = []
    for line in text.splitlines():
        if line.lstrip().startswith("{"):
            rows.append(json.loads(line))
    return rows
