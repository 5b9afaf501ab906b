"""A user's machine for the tests of this folder: no root, the tools of a list on PATH, and no compiler but the named ones.

Where the tests run as root, commands run as an unprivileged user, who may write below the test's own folder only.
"""

import os
import pwd
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = Path(__file__).resolve().parent / "outside"
TOOLS = ("cmake", "ninja", "pkg-config", "ar", "as", "ld", "nm", "objcopy", "objdump", "ranlib", "readelf", "strip", "sh", "cat", "cp",
         "env", "ls", "mkdir", "mv", "rm", "sed", "uname")


def blocks_of(page: str, language: str, holds: str) -> str:
    """The text of the only code block in `language` of a page that holds `holds`."""
    found = [block for block in re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / page).read_text(), re.M | re.S) if holds in block]
    if len(found) != 1:
        sys.exit(f"{page} has {len(found)} blocks of {language} with {holds!r}, and should have one")
    return found[0]


class Machine:
    def __init__(self, folder: Path, *compilers: str) -> None:
        """Makes `folder` anew. `compilers` are paths, and commands find each of them by its last part."""
        self.folder = folder.resolve()
        shutil.rmtree(self.folder, ignore_errors=True)
        tools = self.folder / "tools"
        tools.mkdir(parents=True)
        for tool in (*TOOLS, *compilers):
            found = shutil.which(tool)
            if found:  # what a test needs and is missing fails by its name
                (tools / Path(tool).name).symlink_to(found)
        self.home = self.folder / "home"
        self.home.mkdir()
        self.known = {"PATH": str(tools), "HOME": str(self.home), "LANG": "C.UTF-8",
                      "CMAKE_BUILD_PARALLEL_LEVEL": os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", "2")}
        self.who: dict[str, object] = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            self.who = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(self.home, nobody.pw_uid, nobody.pw_gid)
            if subprocess.run(["/bin/sh", "-c", f"test -x '{self.home}' && test -r '{ROOT}/CMakeLists.txt'"], **self.who).returncode:
                print(f"{self.home} or {ROOT} is closed to other users: what follows runs as root")
                self.who = {}

    def run(self, *command: object, at: Path | None = None, **environment: object) -> str:
        """What a command prints. One string is a line of shell. A command that fails ends the test."""
        words = ["sh", "-c", str(command[0])] if len(command) == 1 else [str(word) for word in command]
        known = self.known | {name: str(value) for name, value in environment.items()}
        words[0] = shutil.which(words[0], path=known["PATH"]) or words[0]
        done = subprocess.run(words, cwd=at or self.home, env=known, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, **self.who)
        if done.returncode:
            sys.exit(f"{' '.join(words)}\n{done.stdout}\nended with {done.returncode}")
        return done.stdout

    def configure(self, source: Path, build: Path, *options: str, generator: str = "Ninja") -> str:
        return self.run("cmake", "-G", generator, "-S", source, "-B", build, *options)

    def build(self, build: Path, *options: str) -> str:
        return self.run("cmake", "--build", build, *options)

    def project(self, name: str, text: str, *sources: Path) -> Path:
        """A folder with `text` as its CMakeLists.txt and copies of the sources."""
        folder = self.home / name
        folder.mkdir()
        (folder / "CMakeLists.txt").write_text(text)
        for source in sources:
            shutil.copy(source, folder)
        return folder


def program_of_the_readme(machine: Machine, holds: str, more: str = "") -> Path:
    """The README's block of CMake that holds `holds`, as a project of a program that is held to warnings of pirn's headers."""
    text = ("cmake_minimum_required(VERSION 3.25)\nproject(outside LANGUAGES CXX)\nset(CMAKE_NO_SYSTEM_FROM_IMPORTED ON)\n"
            + blocks_of("README.md", "cmake", holds) + "target_compile_options(server PRIVATE -Wall -Wextra -Werror)\n" + more)
    folder = machine.project(holds, text, OUTSIDE / "program.cpp")
    (folder / "program.cpp").rename(folder / "server.cpp")
    return folder
