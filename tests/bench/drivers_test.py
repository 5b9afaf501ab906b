"""The drivers of servers, against servers in Python that answer rightly and wrongly. The argument is their folder."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import unittest
from pathlib import Path
from unittest import mock

BODY = b"\r\n\r\nHello, world!\n"
REQUEST = "GET /hello HTTP/1.1\r\n\r\n"


def serve(server: socket.socket, answer) -> None:
    """Answers the nth message of all, from 1, by answer(message, n), which returns None to hang up."""
    count = 0

    def serve_one(client) -> None:
        nonlocal count
        with client, contextlib.suppress(ConnectionError):
            while message := client.recv(65536):
                count += 1
                if (made := answer(message, count)) is None:
                    return
                client.sendall(made)

    with contextlib.suppress(OSError):  # the test closes it
        while True:
            threading.Thread(target=serve_one, args=server.accept()[:1], daemon=True).start()


def serve_datagrams(server: socket.socket, answer) -> None:
    count = 0
    with contextlib.suppress(OSError):
        while True:
            message, sender = server.recvfrom(65536)
            count += 1
            if (made := answer(message, count)) is not None:
                server.sendto(made, sender)


def of_store(message: bytes, count: int) -> bytes:
    """Answers a request of the workload `store`, whose values never change."""
    command, key = message.split()[:2]
    if command == b"set":
        return b"STORED\r\n"
    keys = [b"k%07d" % (int(key[1:]) + i) for i in range(4 if command == b"scan" else 1)]
    return b"".join(b"VALUE %s 0 100\r\n%s\r\n" % (each, each.rjust(100, b".")) for each in keys) + b"END\r\n"


def same(message: bytes, count: int) -> bytes:
    return message


class DriversTest(unittest.TestCase):
    def drive(self, driver: str, answer, *arguments: str, connections: int = 2, seconds: str = "0.05"):
        server = socket.create_server(("127.0.0.1", 0)) if driver == "stream_driver" else socket.socket(type=socket.SOCK_DGRAM)
        with server:
            if driver == "datagram_driver":
                server.bind(("127.0.0.1", 0))
            run = serve if driver == "stream_driver" else serve_datagrams
            threading.Thread(target=run, args=(server, answer), daemon=True).start()
            command = [str(FOLDER / driver), str(os.getpid()), seconds, str(server.getsockname()[1]), str(connections), *arguments]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            server.shutdown(socket.SHUT_RDWR) if driver == "stream_driver" else None
        return done.returncode, done.stderr, [json.loads(line) for line in done.stdout.splitlines()]

    def assert_rows(self, found) -> None:
        status, said, rows = found
        self.assertEqual((status, said), (0, ""))
        values = {row["measure"]: row["value"] for row in rows}
        self.assertEqual(list(values), ["per-cpu", "throughput", "p50", "p99", "p99.9"])
        self.assertEqual([row["unit"] for row in rows], ["requests/s"] * 2 + ["ns"] * 3)
        self.assertTrue(0 < values["p50"] <= values["p99"] <= values["p99.9"])
        # A closed loop of two: about two requests in the time that one takes.
        self.assertLess(values["throughput"], 2.5e9 / values["p50"] * 2)
        self.assertGreater(min(values.values()), 0)

    def assert_fails(self, reason: str, driver: str, answer, *arguments: str) -> None:
        status, said, rows = self.drive(driver, answer, *arguments)
        self.assertEqual(rows, [])
        self.assertNotEqual(status, 0)
        self.assertIn(reason, said)

    def test_messages_that_come_back_are_measured(self):
        self.assert_rows(self.drive("stream_driver", same, "64"))
        self.assert_rows(self.drive("stream_driver", same, "200000"))

    def test_answers_to_a_request_are_measured(self):
        answer = b"HTTP/1.1 200 OK" + BODY
        self.assert_rows(self.drive("stream_driver", lambda message, count: answer, str(len(answer)), REQUEST, "HTTP/1.1 200 "))

    def test_the_mix_of_the_store_is_measured_and_a_value_of_another_key_is_none(self):
        with mock.patch.dict(os.environ, {"PIRN_BENCH_KEYS": "100"}):
            self.assert_rows(self.drive("stream_driver", of_store, "store"))
            self.assert_fails("no answer", "stream_driver",
                              lambda message, count: of_store(message, count).replace(b"....k", b"...kk"), "store")

    def test_wrong_bytes_a_long_answer_and_the_end_of_a_connection_are_no_figures(self):
        self.assert_fails("no answer", "stream_driver",
                          lambda message, count: message if count < 9 else message.swapcase(), "64")
        self.assert_fails("no answer", "stream_driver", lambda message, count: message + b"x", "64")
        self.assert_fails("no answer", "stream_driver",
                          lambda message, count: b"HTTP/1.1 %d OK" % (200 if count < 9 else 500) + BODY,
                          str(len(b"HTTP/1.1 200 OK" + BODY)), REQUEST, "HTTP/1.1 200 ")
        self.assert_fails("ended a connection", "stream_driver", lambda message, count: message if count < 9 else None, "64")

    def test_a_server_that_does_not_answer_is_no_figure(self):
        self.assert_fails("nothing came back", "stream_driver", lambda message, count: b"", "64")

    def test_datagrams_that_come_back_are_measured(self):
        status, said, rows = self.drive("datagram_driver", same, "64")
        self.assertEqual((status, said, len(rows)), (0, "", 5))

    def test_other_and_lost_datagrams_are_no_figures(self):
        self.assert_fails("was not sent", "datagram_driver", lambda message, count: message[:-1] + b"?", "64")
        self.assert_fails("was not sent", "datagram_driver", lambda message, count: message[:-1], "64")
        status, said, rows = self.drive("datagram_driver", lambda message, count: message if count % 10 else None, "64",
                                        seconds="1.2")
        self.assertIn("was lost", said)

    def test_wrong_arguments_are_told(self):
        for driver, arguments in (("stream_driver", ()), ("datagram_driver", ("15",))):
            self.assertIn("usage: ", self.drive(driver, same, *arguments)[1])


if __name__ == "__main__":
    FOLDER = Path(sys.argv.pop())
    unittest.main()
