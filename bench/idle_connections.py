"""The other side of the workload idle-connections: opens connections, has one request answered over each, and prints what
each of them takes of the server's memory and of the kernel's while nothing happens.

    idle_connections.py SERVER SECONDS ADDRESS CONNECTIONS

SERVER is the process that serves, SECONDS how long nothing happens before the memory is read.
"""

import json
import os
import re
import resource
import socket
import sys
import time
from pathlib import Path

BEYOND = 77  # exit status where the machine does not allow so many
FROM_ONE_ADDRESS = 10_000  # of the 28,000 ports that there are for each pair of addresses
BATCH = 100  # connections that are opened at once; the first of them do not count
IP_BIND_ADDRESS_NO_PORT = 24
# The servers of echo send it back, those of HTTP answer it.
REQUEST = b"GET /hello HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
ANSWER = b"\r\n\r\nHello, world!\n"


def open_connection(port: int, number: int) -> socket.socket:
    made = socket.socket()
    made.settimeout(60)
    made.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
    made.bind((f"127.0.0.{1 + number // FROM_ONE_ADDRESS}", 0))
    made.connect(("127.0.0.1", port))
    made.sendall(REQUEST)
    return made


def take_answer(server: socket.socket) -> None:
    answer = b""
    while answer != REQUEST and not answer.endswith(ANSWER):
        if len(answer) > 4096 or not (got := server.recv(4096)):
            sys.exit(f"check failed: the answer is {answer[:80]!r}")
        answer += got


def memory(server: int) -> dict[str, int]:
    """Returns bytes: of the process, resident and page tables; of the kernel, its objects of all processes."""
    status = Path(f"/proc/{server}/status").read_text()
    slab = re.search(r"^Slab:\s+(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return {"process": 1024 * sum(map(int, re.findall(r"^Vm(?:RSS|PTE):\s+(\d+) kB$", status, re.MULTILINE))),
            "kernel": 1024 * int(slab.group(1))}


def main() -> int:
    server, seconds, port, connections = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    needed = connections + BATCH + 100
    if needed > resource.getrlimit(resource.RLIMIT_NOFILE)[1]:
        print(f"needs {needed} descriptors (ulimit -Hn {resource.getrlimit(resource.RLIMIT_NOFILE)[1]})", file=sys.stderr)
        return BEYOND
    opened = []
    for first in range(0, connections + BATCH, BATCH):
        batch = [open_connection(port, number) for number in range(first, min(first + BATCH, connections + BATCH))]
        for each in batch:
            take_answer(each)
        opened += batch
        if first == 0:
            time.sleep(seconds)
            before = memory(server)
    time.sleep(seconds)
    after = memory(server)
    opened[0].sendall(REQUEST)
    take_answer(opened[0])
    if len(os.listdir(f"/proc/{server}/fd")) < len(opened):
        sys.exit("check failed: the server has closed connections")
    for measure, value in after.items():
        print(json.dumps({"measure": measure, "unit": "B", "value": (value - before[measure]) / connections}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
