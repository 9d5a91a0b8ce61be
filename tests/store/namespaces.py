"""Folders that are full or read-only, also for root: a namespace with a small file system of its own."""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@functools.cache
def _permitted() -> bool:
    if shutil.which("unshare") is None:
        return False
    command = ["unshare", "-Urm", "mount", "-t", "tmpfs", "none", "/mnt"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def python_on_small_disk(
    folder: Path, options: str, *commands: str
) -> list[subprocess.CompletedProcess[str]]:
    """Run Python programs, one after another, with a file system with these mount options over the folder.

    A program of the form `mount:OPTIONS` mounts it again instead.
    """
    if not _permitted():
        pytest.skip("user namespaces with mounts are not permitted here")
    script = [f"mount -t tmpfs -o {options} none {folder}", f"cd {folder}"]
    for number, command in enumerate(commands):
        if command.startswith("mount:"):
            script.append(f"mount -o remount,{command.removeprefix('mount:')} {folder}")
            continue
        source = folder.parent / f"program{number}.py"
        source.write_text(command)
        script.append(f"{sys.executable} {source} > {source}.out 2> {source}.err; echo $? > {source}.code")
    subprocess.run(["unshare", "-Urm", "sh", "-ec", "\n".join(script)], check=True, timeout=60)
    return [
        subprocess.CompletedProcess(
            command,
            *(
                Path(f"{folder.parent}/program{number}.py.{kind}").read_text()
                for kind in ("code", "out", "err")
            ),  # type: ignore[arg-type]
        )
        for number, command in enumerate(commands)
        if not command.startswith("mount:")
    ]
