"""Starts the echo, web and UDP server examples as a user does, sends them requests, and ends them by a signal."""

import http.client
import pathlib
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile

ECHO, WEB, UDP = sys.argv[1:4]


class Server:
    def __init__(self, *command, files=None):
        limit = (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))) if files else None
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=limit)
        line = self.process.stdout.readline()
        self.port = int(re.search(r":(\d+)/?$", line.strip()).group(1))

    def end(self, number):
        self.process.send_signal(number)
        assert self.process.wait(timeout=30) == 0, f"ended with {self.process.returncode}"


def echo() -> None:
    server = Server(ECHO, "0")
    clients = [socket.create_connection(("127.0.0.1", server.port), timeout=30) for _ in range(50)]
    for number, client in enumerate(clients):
        client.sendall(b"hello %d\n" % number)
    for number, client in enumerate(clients):
        assert client.makefile().readline() == f"hello {number}\n"
    server.end(signal.SIGTERM)
    assert clients[0].recv(1) == b""


def echo_after_a_shortage() -> None:
    server = Server(ECHO, "0", files=20)
    clients = [socket.create_connection(("127.0.0.1", server.port), timeout=30) for _ in range(30)]
    for number, client in enumerate(clients):
        client.sendall(b"hello %d\n" % number)
    for number, client in enumerate(clients):
        with client:
            assert client.makefile().readline() == f"hello {number}\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
        client.sendall(b"again\n")
        assert client.makefile().readline() == "again\n"
    server.end(signal.SIGTERM)


def web() -> None:
    with tempfile.TemporaryDirectory() as root:
        (pathlib.Path(root) / "page.html").write_text("<p>here</p>")
        server = Server(WEB, "--root", root, "--port", "0", "--workers", "2", "--address", "::1")
        connection = http.client.HTTPConnection("::1", server.port, timeout=30)
        for target, status, body in (("/hello", 200, b"Hello, world!\n"), ("/page.html", 200, b"<p>here</p>"),
                                     ("/none", 404, b"404 Not Found\n"), ("/../page.html", 403, b"403 Forbidden\n")):
            connection.request("GET", target)
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (status, body), (target, answer.status)
        server.end(signal.SIGINT)
    for wrong in (["--port", "x"], ["--nothing"], ["--root"], ["--address", "nowhere"], ["--root", "/nonexistent"]):
        done = subprocess.run([WEB, *wrong], capture_output=True, text=True, timeout=30)
        assert done.returncode == 1 and done.stderr, wrong


def udp() -> None:
    server = Server(UDP, "0")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(30)
        client.connect(("127.0.0.1", server.port))
        client.send(b"x" * 1501)  # too long: dropped
        for number in range(50):
            client.send(b"hello %d" % number)
        for number in range(50):
            assert client.recv(100) == b"hello %d" % number
    server.end(signal.SIGTERM)


echo()
echo_after_a_shortage()
web()
udp()
