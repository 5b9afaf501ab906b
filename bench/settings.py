"""Workloads that are measured at many settings: each of their programs runs once for each setting, in a separate
process."""

from dataclasses import dataclass, field, replace
from pathlib import Path


@dataclass(frozen=True)
class Setting:
    """The environment of a process: inputs as PIRN_BENCH_<name>, and other variables unchanged."""

    inputs: dict = field(default_factory=dict)
    variables: dict = field(default_factory=dict)
    cores: int = 1  # number of cores that it may run on
    own_words: bool = False  # whether pirn is built so that every context has its own control words
    skipped: str = ""  # the reason, if nothing can be measured here
    without: tuple = ()  # implementations that are omitted, because they would take too long
    only: tuple = ()  # the only implementations that support it, where most do not

    def suits(self, impl: str) -> bool:
        impl = impl.partition("@")[0].removesuffix("-gcc")  # pirn at an earlier revision, or by gcc, supports the same
        return impl not in self.without and (not self.only or impl in self.only)

    @property
    def name(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.inputs.items())


def ring(scale: str) -> list[Setting]:
    """Returns settings of N, coroutines, M, D, P; M is the source's formula, with --quick a twentieth of it."""
    counts, cycles = (16, 80, 800, 80_000), (2, 8)
    if scale == "sweep":
        counts = (16, 80, 800, 8000, 80_000, 800_000, 8_000_000)
        chosen = [(n, count, extra, workers) for n in cycles for extra in (0, 1000, 10_000) for workers in (1, 2)
                  for count in counts]
    else:
        chosen = [(n, count, 0, 1) for n in cycles for count in ((16, 800) if scale == "quick" else counts)]
        if scale == "normal":
            chosen += [(n, count, 0, 1) for n in cycles for count in (800_000, 8_000_000)]
            chosen += [(n, 800, extra, workers) for n in cycles for extra, workers in ((1000, 1), (10_000, 1), (0, 2))]
    share = 20 if scale == "quick" else 1

    def setting(n, count, extra, workers) -> Setting:
        slow = ("pthread",) if scale != "sweep" and (n, count, extra, workers) != (8, 16, 0, 1) else ()
        inputs = {"N": n, "COROUTINES": count, "M": (8_000_000 // count + 100) // share, "D": extra, "P": workers}
        return Setting(inputs, cores=workers, without=slow)

    return [setting(*each) for each in chosen]


TCMALLOC = Path("/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4")


def aco(scale: str) -> list[Setting]:
    """Returns settings of coroutines and bytes of their images, as in libaco's benchmark; of the order of resumption,
    the owner of the control words, the malloc, and whether all lines of an image change at each turn."""
    plain = ("creation", "shared", "glibc")
    variants = [("random", "shared", "glibc"), ("creation", "own", "glibc"), ("creation", "shared", "tcmalloc")]
    images = [(1, 0)] + [(count, image) for count in (2_000_000, 10_000_000) for image in (8, 24, 40, 56, 120)]
    images += [(2_000_000, image) for image in (136, 152, 248, 504)] + [(1_000_000, 1016)]
    images += [(100_000, image) for image in (8, 120, 1016, 2040, 4088, 7992)]
    if scale == "sweep":
        chosen = [(*each, *variant) for variant in (plain, *variants, ("random", "own", "tcmalloc")) for each in images]
    elif scale == "normal":
        fewer = [(1, 0), (100_000, 8), (100_000, 1016), (100_000, 2040), (100_000, 4088), (100_000, 7992), (2_000_000, 8),
                 (2_000_000, 120), (2_000_000, 504), (10_000_000, 8), (10_000_000, 120)]
        chosen = [(*each, *plain) for each in fewer]
        chosen += [(count, image, *variant) for variant in variants
                   for count, image in ((1, 0), (2_000_000, 120), (10_000_000, 8))]
    else:
        chosen = [(1, 0, *plain), (100_000, 8, *plain), (100_000, 1016, *plain)]
        chosen += [(100_000, 120, *variant) for variant in (plain, *variants)]

    if scale != "quick":
        chosen += [(count, image, *plain, 1) for count, image in ((2_000_000, 504), (100_000, 1016), (100_000, 2040))]

    def setting(count, image, order, words, malloc, dirty=0) -> Setting:
        inputs = {"COROUTINES": count, "IMAGE": image, "ORDER": order, "FPENV": words, "MALLOC": malloc, "DIRTY": dirty,
                  "RESUMES": 2_000_000 if scale == "quick" else 20_000_000}
        if malloc != "tcmalloc":
            return Setting(inputs, own_words=words == "own")
        reason = "" if TCMALLOC.exists() else "tcmalloc is not installed (Debian: libtcmalloc-minimal4)"
        return Setting(inputs, {"LD_PRELOAD": str(TCMALLOC)}, own_words=words == "own", skipped=reason)

    return [setting(*each) for each in chosen]


def memory(scale: str) -> list[Setting]:
    """Returns settings of the number of units that wait at once."""
    return [Setting({"UNITS": units}) for units in ((100_000,) if scale == "quick" else (1_000_000, 10_000_000))]


def callbacks(scale: str) -> list[Setting]:
    """Returns settings of the bytes of a stack, other than the usual one for programs that make a stack for each
    request."""
    sizes = () if scale == "quick" else (8 << 10, 16 << 10, 256 << 10)
    return [Setting({}), *(Setting({"STACK": size}, only=("pirn-new", "ucontext-new")) for size in sizes)]


def variables(scale: str) -> list[Setting]:
    """Returns settings of the variables that a coroutine has."""
    return [Setting({"VARIABLES": number}) for number in (1, 64)]


def threadring(scale: str) -> list[Setting]:
    """Returns settings of processes in the ring; 503 is the classic number, and for the largest number pirn's fibers
    take 4 GB."""
    counts = {"quick": (10, 503), "normal": (10, 503, 10_000, 100_000, 800_000),
              "sweep": (10, 100, 503, 1000, 10_000, 100_000, 800_000)}[scale]
    return [Setting({"PROCESSES": count}) for count in counts]


def spread(scale: str) -> list[Setting]:
    """Returns settings of the depth of functions above the yield, and of the values that each of them keeps."""
    depths, lives = {"quick": ((3,), (0, 3)), "normal": ((1, 3, 5, 8), (0, 1, 3, 5)),
                     "sweep": (range(1, 9), range(6))}[scale]
    return [Setting({"DEPTH": depth, "LIVE": live}) for depth in depths for live in lives]


def trim(scale: str) -> list[Setting]:
    """Returns settings of the workers, and of threads that compute while one worker trims."""
    return [Setting({"WORKERS": count, "BUSY": 0}, cores=count) for count in (1, 2)] + \
        [Setting({"WORKERS": 1, "BUSY": count}, cores=2) for count in ((2,) if scale == "quick" else (1, 2, 8))]


def chan(scale: str) -> list[Setting]:
    """Returns settings of the shape, from senders to receivers, of the room of a channel and the number of workers.
    Channels without room are had by few; with one worker plain fibers are all."""
    needless = {1: ("pirn-plain",), 2: ()}
    few = ("pirn", "pirn-migratable", "pirn-switch-over", "pirn-call", "go")
    usual = [Setting({"SHAPE": shape, "ROOM": room, "WORKERS": workers}, cores=workers,
                     without=(*needless[workers], *without))
             for workers in (1, 2)
             for shape, room, without in (("ping-pong", 1, ()), ("fan-in", 64, ("pirn-call",)), ("fan-out", 64, ("pirn-call",)))]
    return usual + [Setting({"SHAPE": shape, "ROOM": room, "WORKERS": workers}, cores=workers,
                            only=few if shape == "ping-pong" else tuple(impl for impl in few if impl != "pirn-call"))
                    for workers in (1, 2) for shape, room in (("ping-pong", 0), ("stream", 0), ("stream", 1))]


def workers(scale: str) -> list[Setting]:
    """Returns settings of the number of workers that share the units. Libraries with one worker are omitted at two, and
    slow ones with --quick; with one worker plain fibers are all."""
    left_out = {1: ("pirn-plain", "pth") if scale == "quick" else ("pirn-plain",), 2: ("st", "pth", "pirn-local")}
    return [Setting({"WORKERS": count}, cores=count, without=left_out[count]) for count in (1, 2)]


def configured(scale: str) -> list[Setting]:
    """Returns settings of the number of workers of the runtime."""
    return [Setting({"WORKERS": 1}), Setting({"WORKERS": 2}, cores=2, only=("pirn", "go"))]


def cores(scale: str) -> list[Setting]:
    """Returns the setting for workloads of two threads, which are pirn's business on one core."""
    return [Setting({}, cores=2)]


def two_workers(scale: str) -> list[Setting]:
    """Returns the setting for workloads that need two workers, or cost nothing in a process with one thread."""
    return [Setting({"WORKERS": 2}, cores=2)]


def queue(scale: str) -> list[Setting]:
    """Returns settings of the number of producers, which equals that of consumers, and the number of workers that they
    share."""
    pairs = (1, 8) if scale == "quick" else (1, 2, 4, 8)
    return [Setting({"PAIRS": count, "WORKERS": workers}, cores=workers) for workers in (1, 2) for count in pairs]


def joined(scale: str) -> list[Setting]:
    """Returns settings of the number of workers that share the units. Libraries whose units stay on their thread are
    omitted at two."""
    return [Setting({"WORKERS": count}, cores=count, without=() if count == 1 else ("st", "pth", "boost-fiber"))
            for count in (1, 2)]


def forks(name: str = "", quick: int = 0, full: int = 0):
    """Returns settings of the number of workers that share the work, and the input for the amount of work."""

    def of_scale(scale: str) -> list[Setting]:
        work = {name: quick if scale == "quick" else full} if name else {}
        return [Setting({"WORKERS": count, **work}, cores=count, without=("serial",) if count != 1 else ())
                for count in (1, 2)]

    return of_scale


def fib40(scale: str) -> list[Setting]:
    """Returns settings of fib40. go, for which fib(40) takes more than five minutes, computes a smaller number: the
    figure is for one call."""
    all_but_go = [replace(each, without=(*each.without, "go")) for each in forks("FIB", 27, 40)(scale)]
    return all_but_go + [Setting({"WORKERS": count, "FIB": 27 if scale == "quick" else 32}, cores=count, only=("go",))
                         for count in (1, 2)]


def http_hello(scale: str) -> list[Setting]:
    """Returns settings of connections."""
    return [Setting({"CONNECTIONS": count}, cores=2) for count in ((100,) if scale == "quick" else (8, 100, 1000))]


def echo(scale: str) -> list[Setting]:
    """Returns settings of connections and of bytes of a message."""
    counts = (100,) if scale == "quick" else (8, 100, 1000)
    sizes = (64,) if scale == "quick" else (64, 4096, 65536)
    return [Setting({"CONNECTIONS": count, "BYTES": size}, cores=2) for size in sizes for count in counts]


def udp(scale: str) -> list[Setting]:
    """Returns settings of clients and of bytes of a datagram. What eight clients have under way fits into a buffer of
    the kernel's usual size, so that nothing is lost."""
    return [Setting({"CONNECTIONS": count, "BYTES": 64}, cores=2) for count in ((8,) if scale == "quick" else (1, 8))]


def idle_connections(scale: str) -> list[Setting]:
    return [Setting({"CONNECTIONS": count}, cores=2) for count in ((1000,) if scale == "quick" else (10_000, 100_000))]


def file(scale: str) -> list[Setting]:
    """Returns settings of the access, of the readers at once and of the bytes of a read. No program of fio's has a
    neighbour for the cold reads, and it costs more than a cached one."""
    depths = (32,) if scale == "quick" else (1, 8, 32, 128)
    chosen = [("cached", 1, 4096), *(("direct", depth, 4096) for depth in depths), ("sequential", 1, 1 << 20), ("cold", 1, 1 << 20)]
    without = {"cached": ("fio-psync", "fio-uring"), "cold": ("fio-psync", "fio-uring", "pthread")}
    return [Setting({"ACCESS": access, "DEPTH": depth, "BYTES": size}, without=without.get(access, ()))
            for access, depth, size in chosen]


SWEEPS = {"http-hello": http_hello, "echo": echo, "unix": echo, "udp": udp, "store": http_hello, "idle-connections": idle_connections, "file": file,
          "yield": configured, "spawn": configured,
          "spread": spread, "spread-counts": spread, "ring": ring, "threadring": threadring, "callbacks": callbacks, "locals": variables, "chan": chan, "mutex": workers, "threads": workers,
          "condvar": workers, "biased": two_workers, "queue": queue, "fib": joined, "sort": joined, "idle": workers,
          "wake-latency": two_workers, "core-to-core": cores, "trim": trim, "fib40": fib40, "skynet": forks(),
          "nqueens": forks("QUEENS", 9, 12), "matmul": forks("MATRIX", 256, 1024), "aco": aco, "memory": memory}
# The rounds without --rounds: of the workloads in SWEEPS, and of the others. Memory and state are the same every time.
SWEPT_ROUNDS, ROUNDS = {"echo": 3, "store": 3, "unix": 3, "udp": 3, "idle-connections": 1, "file": 3, "ring": 3, "threadring": 3, "aco": 3, "memory": 1, "saved-bytes": 1, "spread-counts": 1, "trim": 3, "idle": 3,
                        "fib40": 1, "matmul": 3}, 9


def rounds_text() -> str:
    return ", ".join([str(ROUNDS), *(f"{workload} {rounds}" for workload, rounds in SWEPT_ROUNDS.items())])


def of(workload: str, scale: str) -> list[Setting]:
    """Returns all settings of a workload at a scale, which is quick, normal or sweep; most have one setting without
    inputs."""
    return SWEEPS[workload](scale) if workload in SWEEPS else [Setting()]
