"""Commands for gdb (13 or newer) that show the fibers of a pirn program, live or in a core file.

    (gdb) source tools/pirn_gdb.py
    (gdb) pirn fibers              one line per fiber: number, name, worker, state, what it waits for, where it is
    (gdb) pirn bt 42               the backtrace of fiber 42; further words go to gdb's own backtrace command
    (gdb) pirn bt all full         the backtraces of all fibers, with local variables

A suspended fiber is three registers in its control block. gdb has no command to unwind from these, and in a core file
registers cannot be set. So while a fiber is shown, an unwinder claims that the innermost frame of the selected thread
was called by the fiber. The frames from there on are gdb's own, with names, lines and variables.
"""

import itertools
import re

import gdb
import gdb.unwinder

# As PIRN_ABI is put together in include/pirn/detail/abi.hpp.
ABIS = ["v1_" + "_".join(parts) for parts in itertools.product(
    ("none", "plain"), ("nosan", "asan", "tsan"), ("fpshared", "fpkept"), ("libstdcxx", "libcxx"))]

SPELLED_ABI = re.compile(r"\b(?:%s)(?:_[a-z0-9]+)*::" % "|".join(ABIS))
# Of libraries with unusual layouts; no list can foresee the names of the others.
ABIS += [abi + layout for abi in ABIS for layout in ("_debug", "_oldstrings", "_debug_oldstrings")
         if abi.endswith("libstdcxx")]

# As in include/pirn/fiber/detail/agent.hpp.
WAITING_BIT = 1
COLD_PART_BIT = 4
NUMBER_SHIFT = 8
JOIN_ENDED, JOIN_FAILED = 3, 5  # of the join word, in control.hpp
HOME_BITS = 63  # of the word that has a fiber's home, in control.hpp
FRESH_OFFSET = 8  # of a fresh context's pc in start_frame

DEEPEST_SEARCH = 40  # frames in which `pirn fibers` searches for the user's innermost function


def fail(why):
    raise gdb.GdbError("pirn: " + why)


def address_of(value):
    return int(value.cast(gdb.lookup_type("unsigned long")))


def word_at(value):
    """Returns the content of a std::atomic word, of whichever standard library."""
    return int(value.address.cast(gdb.lookup_type("unsigned long").pointer()).dereference())


def int_at(value):
    return int(value.address.cast(gdb.lookup_type("int").pointer()).dereference())


def text_at(pointer):
    try:
        return pointer.cast(gdb.lookup_type("char").pointer()).string(errors="replace")
    except gdb.error as error:
        return "<%s>" % error


def short(text):
    """Returns the name without the inline namespace, which is the same in every name."""
    return SPELLED_ABI.sub("", text)


def newest_registers():
    frame = gdb.newest_frame()
    return int(frame.read_register("pc")), int(frame.read_register("sp"))


def stack_of_fork(part):
    """Returns the stack on which the fiber with this cold part runs because of a fork2, or None."""
    if address_of(part["first_halves"]):
        return part["first_halves"]["on"]["memory"]
    if address_of(part["continues"]):
        call = part["continues"]
        return (call["around"]["memory"] if address_of(call["around"]["memory"]) else call["root"]).dereference()
    return None


class Fiber:
    """The data of one fiber in its control block."""

    def __init__(self, pointer, worker):
        block = pointer.dereference()
        self.worker = worker
        self.block = block
        self.address = address_of(pointer)
        identity = word_at(block["identity_"])
        self.number = identity >> NUMBER_SHIFT
        self.limit = address_of(block["memory"]["limit_"])
        self.top = address_of(block["memory"]["top_"])
        state = block["state"]
        self.pc, self.sp, self.fp = (address_of(state[name]) for name in ("pc", "sp", "fp"))
        self.waiting = bool(word_at(block["word_"]) & WAITING_BIT)
        self.name = ""
        if identity & COLD_PART_BIT:
            cold = gdb.lookup_type(worker.namespace + "::fiber_cold_part")
            part = gdb.Value(self.top - cold.sizeof).cast(cold.pointer()).dereference()
            self.name = text_at(part["name"].address)
            if (runs_on := stack_of_fork(part)) is not None:
                self.limit, self.top = (address_of(runs_on[name]) for name in ("limit_", "top_"))
        self.thread = None  # the thread that runs it now

    def holds(self, address):
        return self.limit <= address < self.top

    def is_fresh(self):
        if self.pc == 0:
            return True
        symbol = gdb.execute("info symbol %#x" % self.pc, to_string=True)
        return re.search(r"\bstart_frame(_plain)?\(?\)? \+ %d in" % FRESH_OFFSET, symbol) is not None

    def entry(self):
        """Returns where a fresh fiber begins: the address on its stack top or, without a stack, in place of the sp."""
        function = self.sp
        if self.pc != 0:
            function = word_at(gdb.Value(self.sp).cast(gdb.lookup_type("unsigned long").pointer()).dereference())
        symbol = gdb.execute("info symbol %#x" % function, to_string=True)
        return re.sub(r" in section .*", "", symbol).strip()

    def state(self):
        if self.thread is not None:
            return "running"
        if self.waiting:
            return "waiting"
        return "not started" if self.is_fresh() else "ready"

    def waits_for(self):
        if self.thread is not None or not self.waiting:
            return ""
        options = self.block["waits"].dereference()
        on = address_of(options["object"])
        return text_at(options["what"]) + (" at %#x" % on if on else "")


def blocks(namespace):
    """Yields every control block of the process, with a fiber or without."""
    abi = namespace.split("::")[1]
    symbol = (gdb.lookup_global_symbol("pirn_fibers_" + abi) or
              gdb.lookup_global_symbol(namespace + "::newest_chunk"))
    control = gdb.lookup_type(namespace + "::fiber_control").pointer()
    chunk_type = gdb.lookup_type(namespace + "::block_chunk")
    chunk = gdb.Value(word_at(symbol.value())).cast(chunk_type.pointer())
    while address_of(chunk):
        first = address_of(chunk["blocks"].address)
        size = chunk["blocks"][0].type.sizeof
        for i in range(chunk["blocks"].type.sizeof // size):
            yield gdb.Value(first + i * size).cast(control)
        chunk = chunk["next"]


class Worker:
    """One worker: its fibers, and its OS thread."""

    def __init__(self, pointer, runtime, namespace):
        self.pointer = pointer
        self.runtime = runtime
        self.namespace = namespace
        self.index = int(pointer["index"])
        kernel_id = int_at(pointer["thread_id"])
        self.thread = next((t for t in gdb.selected_inferior().threads() if kernel_id and t.ptid[1] == kernel_id), None)

    def fibers(self):
        found = [Fiber(block, self) for block in blocks(self.namespace) if self.is_home_of(block)]
        self.find_running(found)
        return found

    def is_home_of(self, block):
        """Returns whether a fiber of this worker lies at the address."""
        ended = range(JOIN_ENDED, JOIN_FAILED + 1)
        return ((int(block["home_"]) & ~HOME_BITS) == address_of(self.pointer)
                and address_of(block["state"]["pc"]) not in ended)

    def find_running(self, fibers):
        if self.thread is None:
            return
        with selected(self.thread):
            _, sp = newest_registers()
        on_cpu = next((f for f in fibers if f.holds(sp)), None)
        if on_cpu is None:
            running = address_of(self.pointer["queue"]["now_"]["running"])
            on_cpu = next((f for f in fibers if f.address == running), None)
        if on_cpu is not None:
            on_cpu.thread = self.thread


class selected:
    """Selects another thread for a while."""

    def __init__(self, thread):
        self.thread = thread

    def __enter__(self):
        self.before = gdb.selected_thread()
        self.frame = gdb.selected_frame() if self.before is not None else None
        if self.thread is not None:
            self.thread.switch()

    def __exit__(self, *_):
        if self.before is not None and self.before.is_valid():
            self.before.switch()
            if self.frame is not None and self.frame.is_valid():
                self.frame.select()


def find_lists():
    """Yields the heads of the lists of runtimes, one for each ABI in the program, with the namespace of their types."""
    lists = []
    untyped = []
    for abi in ABIS:
        namespace = "pirn::%s::detail" % abi
        name = "pirn_runtimes_" + abi
        # Looks it up by its linkage name, which gdb prefers, or by its name in the source.
        symbol = gdb.lookup_global_symbol(name) or gdb.lookup_global_symbol(namespace + "::registered_runtimes")
        if symbol is not None:
            lists.append((symbol.value(), namespace))
            continue
        try:
            gdb.parse_and_eval("(long)&'%s'" % name)
            untyped.append(name)
        except gdb.error:
            pass
    if not lists and untyped:
        fail("found the list of runtimes (%s), but not its type: libpirn_fiber was built without debug "
             "information; build it with -g" % untyped[0])
    if not lists:
        fail("this program has no symbol pirn_runtimes_*: it does not use pirn fibers, its symbols are stripped, or its "
             "shared libraries are not loaded yet")
    return lists


def all_workers():
    if gdb.selected_thread() is None:
        fail("no process: run the program, attach to it, or load a core file")
    workers = []
    for head, namespace in find_lists():
        try:
            entry = head
            while address_of(entry):
                for i in range(int(entry["worker_count"])):
                    workers.append(Worker(entry["workers"][i], int(entry["number"]), namespace))
                entry = entry["next"]
        except gdb.error as error:
            fail("cannot read the list of runtimes in %s: %s (is all of pirn built with -g?)" % (namespace, error))
    return workers


def all_fibers():
    for worker in all_workers():
        try:
            fibers = worker.fibers()
        except gdb.error as error:
            fail("cannot read the fibers of worker %d: %s (is all of pirn built with -g?)" % (worker.index, error))
        yield from sorted(fibers, key=lambda f: f.number)


class FrameId:
    def __init__(self, sp, pc):
        self.sp = sp
        self.pc = pc


class FiberUnwinder(gdb.unwinder.Unwinder):
    """Makes a suspended fiber the caller of the selected thread's innermost frame."""

    def __init__(self):
        super().__init__("pirn-fiber")
        self.enabled = False
        self.fiber = None
        self.real = None

    def __call__(self, pending):
        if self.fiber is None:
            return None
        if (int(pending.read_register("pc")), int(pending.read_register("sp"))) != self.real:
            return None
        # The frame would be here if the fiber had called a function.
        info = pending.create_unwind_info(FrameId(gdb.Value(self.fiber.sp - 16), gdb.Value(self.real[0])))
        pointer = gdb.lookup_type("void").pointer()
        for register, value in (("rip", self.fiber.pc), ("rsp", self.fiber.sp), ("rbp", self.fiber.fp)):
            info.add_saved_register(register, gdb.Value(value).cast(pointer))
        return info


UNWINDER = FiberUnwinder()
gdb.unwinder.register_unwinder(None, UNWINDER, replace=True)


class frames_of:
    """While this is entered, gdb's frames from level `first` on are those of the fiber; nothing else changes."""

    def __init__(self, fiber):
        self.fiber = fiber
        self.threads = selected(fiber.thread)
        self.first = 0

    def __enter__(self):
        self.threads.__enter__()
        if self.fiber.thread is not None:
            return self
        UNWINDER.real = newest_registers()
        UNWINDER.fiber = self.fiber
        UNWINDER.enabled = True
        gdb.invalidate_cached_frames()
        frame = gdb.newest_frame()
        while frame is not None and int(frame.read_register("sp")) != self.fiber.sp:
            frame = frame.older()
            self.first += 1
        if frame is None:
            self.__exit__()
            fail("gdb cannot unwind into fiber %d" % self.fiber.number)
        return self

    def __exit__(self, *_):
        UNWINDER.fiber = None
        UNWINDER.enabled = False
        gdb.invalidate_cached_frames()
        self.threads.__exit__()

    def frames(self):
        frame = gdb.newest_frame()
        for _ in range(self.first):
            frame = frame.older()
        while frame is not None:
            yield frame
            frame = frame.older()


def where(fiber):
    """Returns the innermost function that is neither pirn's nor std's, with its line; for a fresh fiber, the function
    in which it will begin."""
    if fiber.is_fresh() and fiber.thread is None:
        return short(fiber.entry())
    innermost = users = ""
    with frames_of(fiber) as view:
        for frame in itertools.islice(view.frames(), DEEPEST_SEARCH):
            if frame.type() == gdb.SIGTRAMP_FRAME:
                innermost = users = ""  # the frames so far were a signal handler's
                continue
            name = frame.name()
            if name is None:
                continue
            place = frame.find_sal()
            text = name
            if place.symtab is not None:
                text += " (%s:%d)" % (place.symtab.filename.rsplit("/", 1)[-1], place.line)
            innermost = innermost or text
            function = frame.function()
            if not users and function is not None and not name.startswith(("pirn::", "std::")):
                users = text
    return short(users or innermost)


class PirnCommand(gdb.Command):
    """Shows the fibers of a pirn program, live or in a core file."""

    def __init__(self):
        super().__init__("pirn", gdb.COMMAND_STACK, prefix=True)


class PirnFibers(gdb.Command):
    """Lists all fibers: number, name, runtime.worker, state, what it waits for, innermost function of the user's."""

    def __init__(self):
        super().__init__("pirn fibers", gdb.COMMAND_STACK)

    def invoke(self, _argument, _from_tty):
        self.dont_repeat()
        columns = "%8s  %-20s %-7s %-11s %-32s %s"
        count = 0
        for fiber in all_fibers():
            if count == 0:
                print(columns % ("fiber", "name", "worker", "state", "waits for", "in"))
            count += 1
            worker = "%d.%d" % (fiber.worker.runtime, fiber.worker.index)
            print((columns % (fiber.number, fiber.name, worker, fiber.state(), fiber.waits_for(), where(fiber))).rstrip())
        print("%d fibers" % count)


class PirnBacktrace(gdb.Command):
    """pirn bt NUMBER|all [ARGUMENTS]: the backtrace of one fiber or of all.

ARGUMENTS are those of gdb's backtrace command, for instance "full"."""

    def __init__(self):
        super().__init__("pirn bt", gdb.COMMAND_STACK)

    def invoke(self, argument, _from_tty):
        self.dont_repeat()
        which, _, options = argument.strip().partition(" ")
        if which != "all" and not which.isdigit():
            fail("pirn bt needs the number of a fiber, or all")
        found = False
        for fiber in all_fibers():
            if which == "all" or fiber.number == int(which):
                found = True
                self.show(fiber, options)
        if not found and which != "all":
            fail("there is no fiber %s" % which)

    @staticmethod
    def show(fiber, options):
        waits = fiber.waits_for()
        print('fiber %d "%s": %s%s, worker %d.%d' % (fiber.number, fiber.name, fiber.state(),
                                                     " for " + waits if waits else "", fiber.worker.runtime,
                                                     fiber.worker.index))
        if fiber.thread is None and fiber.is_fresh():
            print("begins in " + short(fiber.entry()))
            if fiber.pc == 0:
                print()
                return
        with frames_of(fiber) as view:
            # A number of frames is counted from gdb's first frame.
            wanted = re.sub(r"(?<![-\w])\d+$", lambda n: str(int(n.group()) + view.first), options)
            text = gdb.execute("backtrace " + wanted, to_string=True)
            keep = False
            for line in text.splitlines():
                level = re.match(r"#(\d+)( *)", line)
                if level:
                    number = int(level.group(1))
                    keep = number >= view.first
                    line = "#%-*d %s" % (len(level.group(0)) - 2, number - view.first, line[level.end():])
                if keep:
                    print(short(line))
        print()


PirnCommand()
PirnFibers()
PirnBacktrace()
