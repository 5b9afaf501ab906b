"""The http-hello workload: a server on one core, wrk on another."""

import http.client
import re
import shutil
import socket
import subprocess
import time

CONNECTIONS = 100
UNITS = {"us": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9}


def reason_to_skip(cores) -> str:
    if len(cores) < 2:
        return "it needs two cores"
    if not shutil.which("wrk"):
        return "wrk is not installed"
    return ""


def measure(command, pin, cores, seconds, environment) -> list[dict]:
    """Starts the server `command PORT`, checks its answer, and returns the rows of one round."""
    port = free_port()
    server = subprocess.Popen(command + [str(port)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, env=environment, preexec_fn=pin(cores[-1]))
    try:
        wait_for(server, port)
        _check_answer(port)
        _wrk(port, pin, cores[0], 1, environment)
        return _wrk(port, pin, cores[0], seconds, environment)
    finally:
        server.terminate()
        try:
            server.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.communicate()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(server, port) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise RuntimeError(f"the server ended: {server.stderr.read().strip()[:200]}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise RuntimeError("the server does not listen")


def _check_answer(port) -> None:
    """Checks that every server sends the same body and keeps the connection open."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    for _ in range(2):
        connection.request("GET", "/hello")
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200 or body != BODY:
            raise RuntimeError(f"check failed: /hello answers {answer.status} {body[:40]!r}")
        if connection.sock is None:
            raise RuntimeError("check failed: the server closes the connection after an answer")
    connection.close()


BODY = b"Hello, world!\n"


def _wrk(port, pin, core, seconds, environment) -> list[dict]:
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--latency", f"http://127.0.0.1:{port}/hello"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, preexec_fn=pin(core), timeout=60 + seconds)
    rate = re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)
    p99 = re.search(r"^\s+99%\s+([\d.]+)(us|ms|s|m)\s*$", done.stdout, re.MULTILINE)
    if done.returncode != 0 or not rate or not p99:
        raise RuntimeError(f"wrk failed: {(done.stderr or done.stdout).strip()[:200]}")
    # A request that took over two seconds (`timeout`) is late, not wrong; the percentile shows it.
    if wrong := re.search(r"Non-2xx or 3xx responses: .*|Socket errors: (?!connect 0, read 0, write 0).*", done.stdout):
        raise RuntimeError(f"check failed: {wrong.group(0)}")
    if float(rate.group(1)) == 0:
        raise RuntimeError("check failed: no request was answered")
    params = {"connections": CONNECTIONS}
    return [
        {"params": {**params, "measure": "throughput"}, "unit": "requests/s", "value": float(rate.group(1))},
        {"params": {**params, "measure": "p99"}, "unit": "ns", "value": float(p99.group(1)) * UNITS[p99.group(2)]},
    ]
