"""The file that the programs of the workload `file` read. Each 4 KiB of it begin with their number in 8 bytes."""

import os
import struct
from pathlib import Path

BLOCK = 4096
MIB = 1 << 20


def prepare(path: Path, mib: int, access: str) -> None:
    """Makes the file if there is none of this size. Afterwards the page cache has all of it if it is to be `cached`, and
    nothing of it otherwise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.stat().st_size != mib * MIB:
        with path.open("wb") as file:
            for first in range(0, mib * MIB // BLOCK, MIB // BLOCK):
                file.write(b"".join(struct.pack("<Q", first + i) + bytes(BLOCK - 8) for i in range(MIB // BLOCK)))
            os.fsync(file.fileno())
    with path.open("rb", buffering=0) as file:
        if access == "cached":
            while file.read(MIB):
                pass
        else:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
