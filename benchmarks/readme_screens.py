"""Put the real screens of `diagnose` and `tune` into the README: `make screens`, on a quiet machine, about six minutes.

The program is the shipped example. Between two marks the README has what the commands printed, letter by letter.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "jpeg_classifier"
README = ROOT / "README.md"
MARKS = "<!-- screen: {name} -->\n```console\n{text}```\n<!-- end of screen -->"


def screen(words: list[str], folder: Path) -> str:
    """Return what a hotloop command prints to standard output."""
    done = subprocess.run(
        [sys.executable, "-m", "hotloop", *words],
        cwd=folder,
        env={
            **os.environ,
            "NO_COLOR": "1",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        },
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return f"$ hotloop {' '.join(words)}\n{done.stdout}"


def put(name: str, text: str) -> None:
    """Replace one screen of the README."""
    page = README.read_text()
    pattern = re.compile(re.escape(f"<!-- screen: {name} -->") + r".*?<!-- end of screen -->", re.DOTALL)
    new, num = pattern.subn(lambda _: MARKS.format(name=name, text=text), page)
    if num != 1:
        raise SystemExit(f"README.md has no screen {name!r}")
    README.write_text(new)


def result_of(printed: str) -> str:
    """Leave out what the program itself printed under `diagnose`: it comes first, and the README has no use for it."""
    command, _, rest = printed.partition("\n")
    lines = rest.splitlines(keepends=True)
    first = next(
        at for at, line in enumerate(lines) if re.match(r"([A-Z]\w+-bound|This machine|Read with care)", line)
    )
    return f"{command}\n{''.join(lines[first:])}"


def main() -> None:
    """Run both and write them down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", default="4m")
    budget = parser.parse_args().budget
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for file in ("train.py", "make_data.py"):
            (folder / file).write_bytes((EXAMPLE / file).read_bytes())
        subprocess.run([sys.executable, "make_data.py", "data"], cwd=folder, check=True)
        put("tune", screen(["tune", "--budget", budget, "python", "train.py"], folder))
        put("diagnose", result_of(screen(["diagnose", "python", "train.py"], folder)))


if __name__ == "__main__":
    main()
