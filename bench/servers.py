"""Workloads of servers: a server on one core, and on another one its load in a closed loop, which also reads what the
server took of its core. A server is started with its address as the only argument."""

import contextlib
import json
import resource
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The workloads, and the program that loads their servers.
DRIVERS = {"echo": "stream_driver", "unix": "stream_driver", "http-hello": "stream_driver", "store": "stream_driver", "udp": "datagram_driver",
           "idle-connections": "idle_connections.py"}
LIMIT_S = 300  # for the load of one round
PATIENCE_S = 30  # for a server to start, and for an answer before the measured ones
BEYOND = 77  # a program that does not support a setting ends so
REQUEST = "GET /hello HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
BODY = b"Hello, world!\n"


class Refused(Exception):
    """The reason why a server or its load cannot run at one setting."""


def measure(workload, command, setting, pin, cores, seconds, environment, programs) -> list[dict]:
    """Starts the server `command`, and returns the rows of one round. The drivers are in the folder `programs`."""
    params = {name.lower(): value for name, value in setting.inputs.items()}
    with tempfile.TemporaryDirectory() as folder:
        address = f"{folder}/socket" if workload == "unix" else str(free_port())
        environment = environment | {"PIRN_BENCH_FOLDER": folder}
        with started(command, address, pin(cores[-1]), environment) as server:
            wait_for(server, _sends_back if workload == "udp" else _accepts, address)
            load = _load(workload, address, params, server.pid, seconds, programs)
            done = subprocess.run(load, env=environment, capture_output=True, text=True, preexec_fn=_with_descriptors(pin(cores[0])),
                                  timeout=LIMIT_S)
            if done.returncode != 0:
                reason = (done.stderr.strip() or "the driver ended").splitlines()[-1][:200]
                raise Refused(reason) if done.returncode == BEYOND else RuntimeError(reason)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return [row | {"params": params | {"measure": row["measure"]}} for row in rows]


def _load(workload, address, params, server, seconds, programs) -> list[str]:
    """Returns the command that prints a row for each measure."""
    driver = programs / DRIVERS[workload]
    load = [str(driver), str(server), str(seconds), address, str(params["connections"])]
    if driver.suffix == ".py":
        return [sys.executable, "-B", str(HERE / driver.name), *load[1:]]
    if workload == "http-hello":
        answer = _answer(address)
        return [*load, str(len(answer)), REQUEST, "HTTP/1.1 200 "]
    if workload == "store":
        return [*load, "store"]
    return [*load, str(params["bytes"])]


@contextlib.contextmanager
def started(command, address, prepare, environment):
    """Runs a server during a `with`."""
    server = subprocess.Popen([*command, address], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, env=environment, preexec_fn=_with_descriptors(prepare))
    try:
        yield server
    finally:
        server.terminate()
        try:
            server.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.communicate()


def _with_descriptors(prepare):
    """As `prepare`, with as many descriptors as the process may have."""
    def both():
        prepare()
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return both


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(server, ask, address) -> None:
    """Returns when `ask(address)` raises no OSError. Raises Refused if the server ends because it has nothing to run on."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if server.poll() is not None:
            reason = f"the server ended: {server.stderr.read().strip()[-200:]}"
            raise Refused(reason) if server.returncode == BEYOND else RuntimeError(reason)
        try:
            return ask(address)
        except OSError:
            time.sleep(0.02)
    raise RuntimeError("the server does not listen")


def connect(address: str, kind=socket.SOCK_STREAM) -> socket.socket:
    of_unix = address.startswith("/")
    made = socket.socket(socket.AF_UNIX if of_unix else socket.AF_INET, kind)
    try:
        made.settimeout(PATIENCE_S)
        made.connect(address if of_unix else ("127.0.0.1", int(address)))
    except OSError:
        made.close()
        raise
    return made


def _accepts(address: str) -> None:
    connect(address).close()


def _sends_back(address: str) -> None:
    with connect(address, socket.SOCK_DGRAM) as client:
        client.settimeout(0.2)
        client.send(b"?")
        client.recv(1)


def _answer(address) -> bytes:
    """Returns the answer to REQUEST. Checks that every server sends the same body, and keeps the connection open for
    another answer of the same length."""
    with connect(address) as client:
        first, second = _exchange(client), _exchange(client)
    if len(first) != len(second):
        raise RuntimeError("check failed: the answers to /hello differ in length")
    return first


def _exchange(client) -> bytes:
    client.sendall(REQUEST.encode())
    answer = b""
    while (end := answer.find(b"\r\n\r\n")) < 0 or len(answer) < end + 4 + len(BODY):
        if not (got := client.recv(4096)):
            raise RuntimeError("check failed: the server closes the connection after an answer")
        answer += got
    if not answer.startswith(b"HTTP/1.1 200 ") or answer[end + 4:] != BODY:
        raise RuntimeError(f"check failed: /hello answers {answer[:80]!r}")
    return answer
