"""The workloads of servers: what the server and its load are started with, and what becomes of those that misbehave."""

import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import rivals  # noqa: E402
import servers  # noqa: E402
import settings  # noqa: E402

# The beginning of servers that end in any case.
HEAD = """#!/usr/bin/env python3
import selectors, signal, socket, sys
signal.alarm(60)
"""
# Serves one connection at a time: by `answer(request, how many there were)`, which returns None to hang up.
SERVER = HEAD + """{answer}
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    client = server.accept()[0]
    count = 0
    while request := client.recv(65536):
        count += 1
        made = answer(request, count)
        if made is None:
            break
        client.sendall(made)
    client.close()
"""
DATAGRAMS = HEAD + """server = socket.socket(type=socket.SOCK_DGRAM)
server.bind(("127.0.0.1", int(sys.argv[1])))
while True:
    server.sendto(*server.recvfrom(65536))
"""
ECHO = "answer = lambda request, count: request"
# Stands for a driver: a row whose value is the number of its arguments.
DRIVER = """#!/bin/sh
echo '{"measure": "p50", "unit": "ns", "value": '$#'}'
"""


def http(body: bytes = servers.BODY, status: bytes = b"200 OK", more: str = "b''") -> str:
    head = b"HTTP/1.1 " + status + b"\r\nContent-Length: %d\r\nX: " % len(body)
    return f"def answer(request, count):\n    return {head!r} + {more} + b'\\r\\n\\r\\n' + {body!r}"


class ServersTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def script(self, name: str, text: str) -> list[str]:
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)
        return [str(path)]

    def measure(self, workload: str, server: str, driver: str = DRIVER, **inputs):
        if not servers.DRIVERS[workload].endswith(".py"):
            self.script(servers.DRIVERS[workload], driver)
        setting = settings.Setting({"CONNECTIONS": 3} | inputs, cores=2)
        return servers.measure(workload, self.script("server", server), setting, lambda core: lambda: None, [0, 1], 0.1,
                               dict(os.environ), self.folder)

    def test_rows_have_the_inputs_and_the_measure(self):
        self.assertEqual(self.measure("echo", SERVER.format(answer=ECHO), BYTES=64),
                         [{"measure": "p50", "unit": "ns", "value": 5,
                           "params": {"connections": 3, "bytes": 64, "measure": "p50"}}])
        (row,) = self.measure("http-hello", SERVER.format(answer=http()))
        self.assertEqual((row["params"], row["value"]), ({"connections": 3, "measure": "p50"}, 7))
        (row,) = self.measure("udp", DATAGRAMS, BYTES=16)
        self.assertEqual(row["params"], {"connections": 3, "bytes": 16, "measure": "p50"})

    def test_the_load_gets_the_server_and_its_address_and_outlives_neither(self):
        server = SERVER.format(answer=ECHO).replace("server =", f"""import os
open({str(self.folder / 'server.txt')!r}, "w").write(f"{{os.getpid()}} {{sys.argv[1]}}")
server =""")
        self.measure("echo", server, f"#!/bin/sh\necho $1 $3 >{self.folder}/driver.txt\n", BYTES=64)
        self.assertEqual((self.folder / "server.txt").read_text().split(), (self.folder / "driver.txt").read_text().split())
        self.assertFalse(Path(f"/proc/{(self.folder / 'server.txt').read_text().split()[0]}").exists())

    def test_what_cannot_run_is_refused_and_what_fails_is_an_error(self):
        for status, error in ((77, servers.Refused), (1, RuntimeError)):
            ends = f"#!/bin/sh\necho 'no io_uring' >&2; exit {status}\n"
            with self.subTest(status):
                for made in ({"server": ends}, {"server": SERVER.format(answer=ECHO), "driver": ends}):
                    with self.assertRaisesRegex(error, "no io_uring"):
                        self.measure("echo", **made, BYTES=64)

    def test_a_wrong_answer_is_no_figure(self):
        for name, answer in {"body": http(b"Hello, World!\n"), "status": http(status=b"404 Not Found"),
                             "length": http(more="b'x' * count"),
                             "end": http().replace("return", "return None if count == 2 else")}.items():
            with self.subTest(name), self.assertRaisesRegex(RuntimeError, "check failed"):
                self.measure("http-hello", SERVER.format(answer=answer))

    def test_idle_connections_are_answered_once_and_measured(self):
        many = HEAD + """server, all = socket.create_server(("127.0.0.1", int(sys.argv[1]))), selectors.DefaultSelector()
all.register(server, selectors.EVENT_READ)
while True:
    for key, _ in all.select():
        if key.fileobj is server:
            all.register(server.accept()[0], selectors.EVENT_READ)
            continue
        if request := key.fileobj.recv(4096):
            key.fileobj.sendall(request)
        else:
            all.unregister(key.fileobj)
            key.fileobj.close()
"""
        rows = self.measure("idle-connections", many, CONNECTIONS=150)
        self.assertEqual([row["params"] for row in rows], [{"connections": 150, "measure": "process"},
                                                           {"connections": 150, "measure": "kernel"}])
        self.assertGreater(rows[0]["value"], 0)
        with self.assertRaisesRegex(RuntimeError, "closed connections"):
            self.measure("idle-connections", many.replace("else:", "if len(all.get_map()) > 120:"), CONNECTIONS=150)
        with self.assertRaisesRegex(servers.Refused, "descriptors"):
            self.measure("idle-connections", many, CONNECTIONS=10_000_000)

    def test_every_workload_of_servers_is_measured_over_connections(self):
        for workload in servers.DRIVERS:
            self.assertIn(workload, rivals.WORKLOADS)
            for setting in settings.of(workload, "normal"):
                self.assertIn("CONNECTIONS", setting.inputs)


if __name__ == "__main__":
    unittest.main()
