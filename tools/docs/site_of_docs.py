"""./dev docs: the pages and the API reference as one site, by Doxygen. Ends with its findings, or with the path of its index.

Doxygen reads copies, with the lines where they were, which are made to say in its language what ours say in plain text.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import links
import staging
import warned

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def build(root: Path, folder: Path) -> list[str]:
    """Makes the site of a tree in `folder`, which then holds nothing else. Returns what is wrong with it."""
    with tempfile.TemporaryDirectory() as temporary:
        stage = Path(temporary).resolve() / "stage"
        staged = staging.stage(root, stage)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        log = Path(temporary) / "warnings"
        added = {
            "INPUT": [*staged.pages, HERE / "namespaces.dox", stage / "include"],
            "RECURSIVE": ["YES"],
            "FILE_PATTERNS": ["*.hpp", "*.h"],
            "USE_MDFILE_AS_MAINPAGE": [staged.pages[0]],
            "IMAGE_PATH": [root / "docs"],
            "STRIP_FROM_PATH": [stage],
            "STRIP_FROM_INC_PATH": [stage / "include"],
            "HTML_EXTRA_FILES": staged.others,
            "OUTPUT_DIRECTORY": [folder],
            "HTML_OUTPUT": ["."],
            "WARN_LOGFILE": [log],
            "PROJECT_NUMBER": [version(root)],
        }
        settings = (HERE / "Doxyfile").read_text() + "".join(
            f"{name} = {' '.join(f'{chr(34)}{value}{chr(34)}' for value in values)}\n" for name, values in added.items())
        done = subprocess.run(["doxygen", "-"], input=settings, cwd=stage, capture_output=True, text=True)
        findings = warned.findings(log.read_text().replace(f"{stage}/", "") if log.exists() else "", stage)
        for path in sorted((stage / "include").rglob("*.hpp")):
            findings += warned.types_without_comment(path.relative_to(stage).as_posix(), path.read_text(encoding="utf-8"))
        if done.returncode:
            findings.append(f"doxygen ended with {done.returncode}: {done.stderr.strip()}")
    links.unlink(folder, "detail_1_1")  # what a class inherits from there is shown as its own
    return findings + links.broken(folder)


def version(root: Path) -> str:
    found = re.search(r"^ *VERSION ([0-9.]+)$", (root / "CMakeLists.txt").read_text(), re.M)
    return found.group(1) if found else ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev docs")
    parser.add_argument("folder", type=Path, metavar="DIR")
    folder = parser.parse_args().folder.resolve()
    if folder.exists() and any(folder.iterdir()) and not (folder / "doxygen.css").exists():
        sys.exit(f"dev: not empty, and no site: {folder}")
    findings = build(ROOT, folder)
    if findings:
        print(*findings, sep="\n", file=sys.stderr)
        print(f"dev: {len(findings)} findings in the docs", file=sys.stderr)
        return 1
    print(folder / "index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
