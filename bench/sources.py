"""The figures of the five documents that pirn grew from, each beside the rows of the bench that ask the same. reproduction.py
makes docs/reproduction.md of them, and a sentence on the page of each workload."""

from dataclasses import dataclass, field

SOURCES = {
    "swapstack": 'Dolan, Muralidharan and Gregg 2013, "Compiler support for lightweight context switching"',
    "stackful": 'Li and others 2023, "Stackful Coroutine Made Fast"',
    "libaco": "libaco's README",
    "rethinkdb": 'RethinkDB, "Making coroutines fast"',
    "usched": 'Danilov, "usched: stackswap coroutines"',
}
# Units of counts (--counts), which are kept apart from times.
COUNTED = ("instructions", "branches", "mispredicted", "d1_misses")


@dataclass(frozen=True)
class Figure:
    """A row of the bench."""

    workload: str
    impl: str
    params: dict = field(default_factory=dict)
    unit: str = "ns"


@dataclass(frozen=True)
class Claim:
    """One statement of a source: of two figures the first is the better one, or both are alike. Without figures it cannot be
    measured here, for the reason `why`; otherwise that says why we differ, where we do."""

    source: str
    place: str
    says: str
    better: Figure | None = None
    worse: Figure | float | None = None  # a number where it follows from the calling convention
    why: str = ""
    even: bool = False  # the source has them alike


def _claims(source: str, rows) -> list[Claim]:
    return [Claim(source, *row) for row in rows]


F = Figure
_ONE, _TWO = {"workers": 1}, {"workers": 2}
_FOR, _WHILE = {"form": "for"}, {"form": "while"}
_TOTAL = {"part": "total"}
_NET = {"cost": "net", "bodies": "one"}
_HTTP, _RPC = ({"protocol": protocol, "bytes": 1_048_576} for protocol in ("http", "rpc"))
_STEADY, _WARM = {"phase": "steady"}, {"phase": "warm-up"}


def _ring(impl: str, n: int, coroutines: int, extra: int = 0, workers: int = 1) -> Figure:
    return F("ring", impl, {"N": n, "coroutines": coroutines, "D": extra, "P": workers}, "op/s")


def _aco(impl: str, coroutines: int, image: int, op: str = "resume", fpenv: str = "shared", malloc: str = "glibc") -> Figure:
    return F("aco", impl, {"coroutines": coroutines, "image": image, "op": op, "fpenv": fpenv, "malloc": malloc,
                           "order": "creation"}, "MiB" if op == "peak" else "ns")


_SWAPSTACK = [
    ("3.5", "functions that switch keep no register for their callers",
     F("spread-counts", "pirn-plugin", {"depth": 3, "live": 0, "of": "pushes and pops"}, "per yield"),
     F("spread-counts", "pirn", {"depth": 3, "live": 0, "of": "pushes and pops"}, "per yield")),
    ("3.5", "and are faster for it", F("spread", "pirn-plugin", {"depth": 3, "live": 0}), F("spread", "pirn", {"depth": 3, "live": 0}),
     "Pushes and pops cost next to nothing on such a processor; `spread` has the depths at which they count."),
    ("table I", "a bare switch takes 5 cycles, one of the fiber library 35", F("switch", "pirn"),
     F("yield", "pirn", {"fibers": 10})),
    ("table I", "a switch of the fiber library takes 35 cycles, one of ST 105", F("yield", "pirn", {"fibers": 10}),
     F("yield", "st", {"fibers": 10})),
    ("table I", "one of ST takes 105 cycles, one of threads 1207", F("yield", "st", {"fibers": 10}),
     F("yield", "pthread", {"fibers": 10})),
    ("table I", "one of threads takes 1207 cycles, one of Pth 6111", F("yield", "pthread", {"fibers": 10}),
     F("yield", "pth", {"fibers": 10})),
    ("table I", "one of LWP takes 191 cycles", None, None, "LWP is not packaged any more."),
    ("figure 4", "the low-lock queue is faster than the lock-free one of Michael and Scott",
     F("queue", "pirn-low-lock", {"pairs": 2, "workers": 2}), F("queue", "ms-lock-free", {"pairs": 2, "workers": 2})),
    ("figure 4", "and faster than that with two locks", F("queue", "pirn-low-lock", {"pairs": 2, "workers": 2}),
     F("queue", "ms-two-lock", {"pairs": 2, "workers": 2}),
     "In pirn's a caller from another core comes to an end of the queue when that end rests, so that a core keeps the line for "
     "many nodes, as with an unfair spinlock; before, each compare-and-swap moved it."),
    ("6.3", "with hints of affinity biased locks take condvar from 2.74 s to 1.96 s",
     F("biased", "pirn-biased", {"work": "buffer", "workers": 2}), F("biased", "pirn", {"work": "buffer", "workers": 2})),
    ("6.3", "biased locks gain nothing while fibers are stolen",
     F("biased", "pirn-migratable", {"work": "buffer", "workers": 2}),
     F("biased", "pirn-biased-migratable", {"work": "buffer", "workers": 2}),
     "Here they lose: a stolen fiber asks for a lock that is biased to another worker, from which it has to be taken.", True),
    ("figure 6", "a ring of actors is faster than Haskell's threads", F("threadring", "pirn-actor", {"processes": 503}),
     F("threadring", "ghc", {"processes": 503})),
    ("figure 6", "than Go's", F("threadring", "pirn-actor", {"processes": 503}), F("threadring", "go", {"processes": 503})),
    ("figure 6", "than Erlang's", F("threadring", "pirn-actor", {"processes": 503}),
     F("threadring", "erlang", {"processes": 503})),
    ("figure 6", "a hop costs more when the fibers no longer fit into the cache", F("threadring", "pirn", {"processes": 503}),
     F("threadring", "pirn", {"processes": 100_000})),
    *[(f"figure 7, {name}", "parallel fibers are faster than threads", F(name, "pirn", _TWO), F(name, "pthread", _TWO))
      for name in ("threads", "mutex", "condvar")],
    *[(f"figure 7, {name}", "fibers of one worker are faster than ST", F(name, "pirn", _ONE), F(name, "st", _ONE),
       "Nearly all of its time is the sorting." if name == "sort" else "") for name in ("threads", "mutex", "condvar", "sort")],
    ("figure 7, sort", "threads are faster than parallel fibers, whose load is balanced badly", F("sort", "pthread", _TWO),
     F("sort", "pirn", _TWO), "Stealing by halves balances the load here, and starting a thread costs a thousand times a fiber's start."),
    *[(f"figure 7, {name}", "one worker without atomic operations is faster than several", F(name, "pirn-local", _ONE),
       F(name, "pirn", _TWO)) for name in ("threads", "condvar")],
    ("figure 7", "the programs of sysbench itself", None, None,
     "Its tests of threads and mutexes make their own threads; ours do the same work by fibers."),
    ("figure 8, fib", "85 times faster than threads", F("fib", "pirn", _TWO), F("fib", "pthread", _TWO)),
    ("figure 8, threadring", "more than 400 times faster than threads", F("threadring", "pirn", {"processes": 503}),
     F("threadring", "pthread", {"processes": 503})),
    ("7.3", "a switch is faster than a message to another hardware thread by plain loads and stores, which takes 20 to 150 cycles",
     F("switch", "pirn"), F("core-to-core", "bare")),
    ("7.3", "so is the fiber library's", F("core-to-core", "pirn"), F("core-to-core", "bare")),
    ("7.5", "36 to 48 bytes are kept at a switch of threadring, where libraries that save registers keep 80 at least",
     F("saved-bytes", "pirn", {"point": 1}, "B"), 80),
    ("7.5", "the same of a library that saves them", F("saved-bytes", "pirn", {"point": 1}, "B"),
     F("saved-bytes", "boost-context", {"point": "resume"}, "B")),
    ("7.5", "a `ucontext_t` has 936 bytes", F("saved-bytes", "pirn", {"point": "yield"}, "B"),
     F("saved-bytes", "ucontext", {"of": "image"}, "B")),
    ("7.5", "no point keeps the 656 bytes that all registers have at most", F("saved-bytes", "pirn", {"point": "select"}, "B"), 656),
    ("figures 4 to 7", "eight hardware threads, and the PowerEN processor", None, None, "This machine has two cores, of x86-64."),
]

_STACKFUL = [
    ("figure 1", "a C++20 generator is 20 times as fast as Boost's, 4 times after some care", F("sum", "cpp20", _FOR),
     F("sum", "boost-context", _FOR)),
    ("figure 1", "assertions turned off make Boost.Coroutine2 faster", F("sum", "boost-coroutine2-o2", _FOR),
     F("sum", "boost-coroutine2-o2-assert", _FOR)),
    ("figure 1", "-O3 instead of -O2 makes it faster", F("sum", "boost-coroutine2", _FOR), F("sum", "boost-coroutine2-o2", _FOR),
     "Today's compiler makes code of both levels that takes as long."),
    ("figure 1", "forced inlining makes it faster", F("sum", "boost-coroutine2-inline", _FOR), F("sum", "boost-coroutine2", _FOR)),
    ("figure 1", "Boost.Context by hand is faster than Boost.Coroutine2", F("sum", "boost-context", _FOR),
     F("sum", "boost-coroutine2", _FOR)),
    ("figure 2", "a while instead of a for makes the C++20 generator slower by half", F("sum", "cpp20", _FOR),
     F("sum", "cpp20", _WHILE), "Today's compiler makes the same code of both."),
    ("figure 5", "with 20 disks Boost is faster than C++23's recursive generator", F("hanoi", "boost-coroutine2", {"disks": 20}),
     F("hanoi", "cpp20-transfer", {"disks": 20}),
     "`cpp20-transfer` is our own form of that generator; its frames are from a pool, and Boost.Coroutine2 still saves all registers."),
    ("figure 5", "the same of the standard library", F("hanoi", "boost-coroutine2", {"disks": 20}), F("hanoi", "std-generator", {"disks": 20})),
    ("figure 5", "C++20's costs 50 times a callback", F("hanoi", "callback", {"disks": 20}), F("hanoi", "cpp20", {"disks": 20})),
    ("figure 5", "that is faster than C++20's, whose cost grows with the depth", F("hanoi", "cpp20-transfer", {"disks": 20}),
     F("hanoi", "cpp20", {"disks": 20})),
    ("2.2", "Boost mispredicts 5.36 % of its branches, C++23's generator 0.76 %", F("hanoi", "cpp20-transfer", {"disks": 14}, "mispredicted"),
     F("hanoi", "boost-coroutine2", {"disks": 14}, "mispredicted"), "The branch predictor is that of a simulated processor."),
    ("2.2, 3.2", "2.58 and 2.19 instructions in a cycle, 2.29 and 2.49 in the sum", None, None,
     "The virtual machine has no hardware counters; `perf stat` says that they are not supported."),
    ("figure 6", "Boost is faster than C++20 coroutines with frames from malloc and a scheduler for each await",
     F("write_fully", "boost-context", _TOTAL), F("write_fully", "cpp20-scheduler-malloc", _TOTAL)),
    ("figure 6", "frames from malloc cost most of it", F("write_fully", "cpp20", _TOTAL), F("write_fully", "cpp20-malloc", _TOTAL)),
    ("2.3", "frames from a pool, at best one that grows and shrinks with the chain, are faster than from malloc",
     F("frames", "pirn-linear", {"depth": 16}), F("frames", "pirn-malloc", {"depth": 16})),
    ("figure 6", "and the scheduler at each await more", F("write_fully", "cpp20", _TOTAL), F("write_fully", "cpp20-scheduler", _TOTAL)),
    ("2.3", "Boost's loads miss the first-level cache in 13.08 %, those of C++20 coroutines in 0.01 %",
     F("write_fully", "cpp20", _TOTAL, "d1_misses"), F("write_fully", "boost-context", _TOTAL, "d1_misses")),
    ("2.3, figure 14", "colouring takes the misses of the first-level cache from 15.83 % to none",
     F("write_fully", "pirn", _TOTAL, "d1_misses"), F("write_fully", "pirn-nocolour", _TOTAL, "d1_misses"),
     "The counted cache has 32 KiB and eight ways."),
    ("figure 14", "and makes the program faster", F("write_fully", "pirn", _TOTAL), F("write_fully", "pirn-nocolour", _TOTAL),
     "One miss a step hides behind the rest of it on such a processor."),
    ("figure 7", "a switch that the compiler sees has 6 instructions, Boost's 24",
     F("transfer", "pirn-transfer", {"values": 2}, "instructions"), F("transfer", "boost-context", {"values": 2}, "instructions")),
    ("figure 10", "an element takes 15 instructions, as a C++20 generator's does",
     F("sum", "pirn", _FOR, "instructions"), F("sum", "cpp20", _FOR, "instructions"),
     "A generator here has a separate stack, can be interleaved with others and looks for an overflow at each turn.", True),
    ("figure 11", "a yield has 12 instructions by the convention, and 24 without it",
     F("yield-breakdown", "pirn", {"step": "3 preserve_none"}, "instructions"),
     F("yield-breakdown", "pirn", {"step": "2 switch inlined"}, "instructions")),
    ("figure 12", "an element costs as much as a C++20 generator's", F("sum", "pirn", _FOR), F("sum", "cpp20", _FOR),
     "On some processors it costs less here.", True),
    ("figure 13", "Hanoi takes half of Boost's time", F("hanoi", "pirn-frame", {"disks": 20}),
     F("hanoi", "boost-coroutine2", {"disks": 20})),
    ("figure 13", "a callback is faster than a generator", F("hanoi", "callback", {"disks": 20}),
     F("hanoi", "pirn", {"disks": 20}), "The consumer's loop is inlined here, a callback through a recursion is not."),
    ("figure 13", "mispredicted branches fall from 11.8 to 1.62 million", F("hanoi", "pirn", {"disks": 14}, "mispredicted"),
     F("hanoi", "boost-coroutine2", {"disks": 14}, "mispredicted")),
    ("figures 5, 13", "C#'s iterators cost several times Boost's coroutines at 20 disks", F("hanoi", "boost-coroutine2", {"disks": 20}),
     F("hanoi", "csharp", {"disks": 20})),
    ("figure 6", "C# is slower than C++20", F("write_fully", "cpp20", _TOTAL), F("write_fully", "csharp", _TOTAL)),
    ("figure 6", "and Rust slower than Boost", F("write_fully", "boost-context", _TOTAL), F("write_fully", "tokio", _TOTAL)),
    ("figure 14", "write_fully is faster than with Boost", F("write_fully", "pirn", _TOTAL), F("write_fully", "boost-context", _TOTAL)),
    ("figure 14", "and than with C++20 coroutines", F("write_fully", "pirn", _TOTAL), F("write_fully", "cpp20-scheduler-malloc", _TOTAL)),
    ("figure 14", "its application part too is faster than with Boost", F("write_fully", "pirn", {"part": "application"}),
     F("write_fully", "boost-context", {"part": "application"})),
    ("figure 15", "the steps take a yield from 8.97 to 1.52 ns", F("yield-breakdown", "pirn", {**_NET, "step": "6 small stack"}),
     F("yield-breakdown", "pirn", {**_NET, "step": "0 all saved"})),
    ("figure 15", "the same where each fiber runs a function of its own, so that returns are mispredicted",
     F("yield-breakdown", "pirn", {**_NET, "bodies": "ten", "step": "6 small stack"}),
     F("yield-breakdown", "pirn", {**_NET, "bodies": "ten", "step": "0 all saved"})),
    ("figure 15", "the inlined switch is a step of that", F("yield-breakdown", "pirn", {**_NET, "step": "2 switch inlined"}),
     F("yield-breakdown", "pirn", {**_NET, "step": "1 six registers"})),
    ("figure 15", "the convention is one", F("yield-breakdown", "pirn", {**_NET, "step": "3 preserve_none"}),
     F("yield-breakdown", "pirn", {**_NET, "step": "2 switch inlined"}),
     "It saves eleven instructions, of pushes and pops, which cost next to nothing on such a processor while returns are predicted."),
    ("figure 15", "a small stack of an odd size is one", F("yield-breakdown", "pirn", {**_NET, "step": "5 colouring"}),
     F("yield-breakdown", "pirn", {**_NET, "step": "4 yield inlined"}), "Here colouring does what the odd size did; the inlined yield of the row touches no stack."),
    *[(f"figure 16, {name}", f"the convention in the library alone gains {library} %", F("client", "pirn-attribute", at), F("client", "classic", at))
      for name, at, library in (("HTTP", _HTTP, 11.2), ("RPC", _RPC, 26.2))],
    *[(f"figure 16, {name}", f"with the compiler's propagation {both} %", F("client", "pirn-plugin", at), F("client", "classic", at))
      for name, at, both in (("HTTP", _HTTP, 18.8), ("RPC", _RPC, 45.2))],
]

_LIBACO = [
    ("benchmark", "a switch between stacks that are not copied takes 10.29 ns", _aco("pirn-aco", 1, 0), _aco("libaco", 1, 0)),
    ("benchmark", "10.38 ns if each coroutine has its own control words", _aco("pirn-aco", 1, 0), _aco("pirn-aco", 1, 0, fpenv="own")),
    ("benchmark", "a resume with 8 bytes to copy takes 33 ns, with 120 bytes 38 ns", _aco("pirn-aco", 2_000_000, 8),
     _aco("pirn-aco", 2_000_000, 120)),
    *[("benchmark", f"a resume of {count:,} with {size} bytes to copy takes {ns} ns", _aco("pirn-aco", count, image), _aco("libaco", count, image))
      for count, image, size, ns in ((2_000_000, 8, 8, 33), (2_000_000, 120, 120, 38), (10_000_000, 8, 8, 33),
                                     (100_000, 2040, 2024, 350), (100_000, 4088, 4072, 596), (100_000, 7992, 7992, 1090))],
    ("benchmark", "a creation takes 65 ns", _aco("pirn-aco", 2_000_000, 120, "create"), _aco("libaco", 2_000_000, 120, "create")),
    ("benchmark", "a destruction 44 ns", _aco("pirn-aco", 2_000_000, 120, "destroy"), _aco("libaco", 2_000_000, 120, "destroy")),
    ("benchmark", "all of it with tcmalloc", _aco("pirn-aco", 2_000_000, 120, malloc="tcmalloc"),
     _aco("libaco", 2_000_000, 120, malloc="tcmalloc")),
    ("benchmark", "with 1000 bytes five times as much", _aco("pirn-aco", 100_000, 8), _aco("pirn-aco", 100_000, 1016)),
    ("benchmark", "to destroy a coroutine takes half the time of its creation", _aco("pirn-aco", 2_000_000, 8, "destroy"),
     _aco("pirn-aco", 2_000_000, 8, "create")),
    ("benchmark", "ten million coroutines take 2.8 GB", _aco("pirn-aco", 10_000_000, 120, "peak"), _aco("libaco", 10_000_000, 120, "peak")),
]

_RETHINKDB = [
    ("graph", "new stacks and swapcontext for each request are much slower than callbacks", F("callbacks", "callback", _STEADY, "/s"),
     F("callbacks", "ucontext-new", _STEADY, "/s")),
    ("reusing coroutines", "coroutines that are used again are faster", F("callbacks", "ucontext-reuse", _STEADY, "/s"),
     F("callbacks", "ucontext-new", _STEADY, "/s")),
    ("a lightweight swapcontext", "and faster still without the system call", F("callbacks", "pirn", _STEADY, "/s"),
     F("callbacks", "ucontext-reuse", _STEADY, "/s")),
    ("graph", "both together are as fast as callbacks", F("callbacks", "callback", _STEADY, "/s"), F("callbacks", "pirn", _STEADY, "/s"),
     "", True),
    ("things that weren't important", "stacks from malloc instead of calloc shorten the warm-up", F("callbacks", "pirn-new", _WARM, "/s"),
     F("callbacks", "pirn-new-calloc", _WARM, "/s")),
    ("things that weren't important", "and so do small stacks", F("callbacks", "pirn-new", {**_WARM, "stack": 8192}, "/s"),
     F("callbacks", "pirn-new", {**_WARM, "stack": 262_144}, "/s")),
]

_USCHED = [
    ("N = 8", "C++ coroutines before usched without locks", _ring("cpp20", 8, 800), _ring("pirn-rr-single", 8, 800)),
    ("N = 8", "usched without locks before Rust", _ring("pirn-rr-single", 8, 800), _ring("rust", 8, 800),
     "Rust's executor is the fastest here: ours is written by hand and runs the coroutine that was woken last."),
    ("N = 8", "usched without locks before Go", _ring("pirn-rr-single", 8, 800), _ring("go", 8, 800)),
    ("N = 8", "usched without locks before usched with them", _ring("pirn-rr-single", 8, 800), _ring("pirn-rr", 8, 800)),
    ("N = 8", "with several threads a local scheduler before one shared", _ring("pirn-ll", 8, 800, workers=2), _ring("pirn-rr", 8, 800, workers=2)),
    ("N = 8", "and before C++ with several threads", _ring("pirn-ll", 8, 800, workers=2), _ring("cpp20", 8, 800, workers=2)),
    ("N = 8", "1000 bytes more in each frame slow usched down by a twentieth", _ring("pirn-swap", 8, 800), _ring("pirn-swap", 8, 800, extra=1000)),
    ("N = 8", "Go gains by several threads", _ring("go", 8, 800, workers=2), _ring("go", 8, 800)),
    ("N = 8", "threads last, until there are too many of them", _ring("go", 8, 16), _ring("pthread", 8, 16)),
    ("N = 8", "Rust halves from 16 to 800,000 coroutines", _ring("rust", 8, 16), _ring("rust", 8, 800_000)),
    ("N = 8", "C++ falls by a fifth", _ring("cpp20", 8, 16), _ring("cpp20", 8, 800_000)),
    ("N = 8", "10,000 bytes more in each frame slow usched down", _ring("pirn-swap", 8, 800), _ring("pirn-swap", 8, 800, extra=10_000)),
    ("N = 2", "usched is half as fast as with N = 8", _ring("pirn-rr-single", 8, 800), _ring("pirn-rr-single", 2, 800)),
    ("N = 2", "Go is better than with N = 8", _ring("go", 2, 800), _ring("go", 8, 800)),
    ("N = 2", "Rust is worse", _ring("rust", 8, 800), _ring("rust", 2, 800)),
    ("both", "the C++ of the source, whose coroutines are cppcoro's, before usched without locks", _ring("cppcoro", 8, 800), _ring("usched-rr-single", 8, 800)),
    ("N = 2", "C++ before usched", _ring("cpp20", 2, 800), _ring("pirn-rr-single", 2, 800)),
    ("both", "16 native threads, and more coroutines than a thread can have", None, None,
     "This machine has two cores; the rows with `P` 2 are what it can show."),
]

CLAIMS = [claim for name, rows in zip(SOURCES, (_SWAPSTACK, _STACKFUL, _LIBACO, _RETHINKDB, _USCHED)) for claim in _claims(name, rows)]

# Workloads that none of the sources has, with the reason why we do.
OURS = {
    "store": "callbacks with a real disk and real sockets", "http-hello": "a server is what most fibers are for", "echo": "the path of a byte alone", "unix": "the same without TCP",
    "udp": "datagrams have costs of their own", "idle-connections": "memory decides how many clients a server has",
    "file": "reads of files block threads", "million": "a stack for each fiber is memory", "spawn": "users start fibers",
    "tree-walk": "a recursion that yields, over data that does not fit the cache", "coro-spawn": "a coroutine's whole life",
    "chan": "messages of Go and tokio", "timers": "sleeps of a server",
    "idle": "a runtime at rest must not burn a core", "trim": "what a peak leaves behind", "fib40": "fork-join without allocation",
    "skynet": "fork-join over a tree", "nqueens": "fork-join with unequal parts", "matmul": "fork-join over memory",
    "explore": "the speed of the explorer", "memory": "bytes of every kind of unit", "locals": "variables of a coroutine are found by its code",
    "wake-latency": "the time until a worker that sleeps runs what it was woken for", "clock": "the cost of an empty loop",
}
