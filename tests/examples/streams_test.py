"""Starts the TCP proxy and the line client examples as a user does, against servers that end halves and drop connections."""

import re
import signal
import socket
import subprocess
import sys
import threading

PROXY, CLIENT = sys.argv[1:3]


def listening() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def in_background(function, *arguments) -> threading.Thread:
    thread = threading.Thread(target=function, args=arguments, daemon=True)
    thread.start()
    return thread


def read_all(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65536), b""))


def answer_at_the_end(server: socket.socket) -> None:
    """Answers each connection only once it has read all of it."""
    while True:
        connection = server.accept()[0]
        connection.settimeout(30)
        with connection:
            connection.sendall(read_all(connection)[::-1])


def proxy() -> None:
    server = listening()
    in_background(answer_at_the_end, server)
    process = subprocess.Popen([PROXY, "0", str(server.getsockname()[1])], stdout=subprocess.PIPE, text=True)
    port = int(re.search(r":(\d+)$", process.stdout.readline().strip()).group(1))
    for size in (0, 1, 1_000_000):
        with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
            sent = bytes(i % 251 for i in range(size))
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)
            assert read_all(client) == sent[::-1], size
    open_still = socket.create_connection(("127.0.0.1", port), timeout=30)
    open_still.sendall(b"unfinished")
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 0
    try:
        assert open_still.recv(1) == b""
    except ConnectionResetError:
        pass  # the proxy had not read all of it


def proxy_without_a_server() -> None:
    gone = listening()
    target = gone.getsockname()[1]
    gone.close()
    process = subprocess.Popen([PROXY, "0", str(target)], stdout=subprocess.PIPE, text=True)
    port = int(re.search(r":(\d+)$", process.stdout.readline().strip()).group(1))
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        assert client.recv(1) == b""
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 0


def answer_lines(server: socket.socket, lines_of_connections: list[int]) -> None:
    """Answers that many lines of each connection, then drops it."""
    for lines in lines_of_connections:
        connection = server.accept()[0]
        connection.settimeout(30)
        with connection, connection.makefile("rwb") as file:
            for _ in range(lines):
                file.write(b"<" + file.readline().strip() + b">\r\n")
                file.flush()
            file.readline()


def line_client() -> None:
    server = listening()
    answering = in_background(answer_lines, server, [1, 0, 0, 2])
    done = subprocess.run([CLIENT, "localhost", str(server.getsockname()[1]), "one", "two", "three"], capture_output=True, text=True,
                          timeout=30)
    assert (done.returncode, done.stdout) == (0, "<one>\n<two>\n<three>\n"), done
    answering.join(30)
    assert not answering.is_alive()


proxy()
proxy_without_a_server()
line_client()
