"""The echo workload: a server on one core, and on another one a driver in a closed loop, which also reads how much CPU
time the server took."""

import json
import resource
import subprocess

import http_hello

BEYOND = 77  # a program that cannot run here ends so


class Refused(Exception):
    """The kernel has nothing for this server."""


def reason_to_skip(cores) -> str:
    return "it needs two cores" if len(cores) < 2 else ""


def measure(command, driver, setting, pin, cores, seconds, environment) -> list[dict]:
    """Starts the server `command PORT`, and returns the rows of one round."""
    connections, size = setting.inputs["CONNECTIONS"], setting.inputs["BYTES"]
    port = http_hello.free_port()
    server = subprocess.Popen(command + [str(port)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, env=environment, preexec_fn=_started_on(pin, cores[-1]))
    try:
        try:
            http_hello.wait_for(server, port)
        except RuntimeError as error:
            raise Refused(str(error)) if server.poll() == BEYOND else error
        arguments = [str(driver), str(port), str(connections), str(size), str(server.pid), str(seconds)]
        done = subprocess.run(arguments, capture_output=True, text=True, preexec_fn=pin(cores[0]), timeout=60 + seconds)
        if done.returncode != 0:
            raise RuntimeError((done.stderr.strip() or "the driver ended").splitlines()[-1][:200])
        return [json.loads(line) for line in done.stdout.splitlines()]
    finally:
        server.terminate()
        try:
            server.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.communicate()


def _started_on(pin, core):
    """As `pin`, with as many descriptors as the process may have."""
    def prepare():
        pin(core)()
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return prepare
