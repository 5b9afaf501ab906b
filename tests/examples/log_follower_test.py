"""Rotates and empties a log while the example follows it: every line is printed once, in order."""

import os
import pathlib
import subprocess
import sys
import tempfile

with tempfile.TemporaryDirectory() as folder:
    log = pathlib.Path(folder, "log")
    log.write_text("one\n")
    with subprocess.Popen([sys.argv[1], str(log)], stdout=subprocess.PIPE, text=True) as follower:
        try:
            assert follower.stdout.readline() == "one\n"
            with log.open("a") as out:
                out.write("two\n")
            assert follower.stdout.readline() == "two\n"
            os.rename(log, log.with_suffix(".1"))
            with log.with_suffix(".1").open("a") as out:
                out.write("late\n")
            log.write_text("three\n")
            assert follower.stdout.readline() == "late\n"
            assert follower.stdout.readline() == "three\n"
            os.truncate(log, 0)
            with log.open("a") as out:
                out.write("4\n")
            assert follower.stdout.readline() == "4\n"
        finally:
            follower.kill()
