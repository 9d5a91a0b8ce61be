"""The native part that a CPU-only build of torch needs: compiled once for each version of torch, loaded before it."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import sysconfig
from importlib.machinery import PathFinder
from pathlib import Path

SOURCE = Path(__file__).with_name("device_guard.cpp")
LIBRARIES = ("libc10.so", "libtorch_cpu.so")


class NotToBeHad(Exception):  # noqa: N818 - an answer
    """The virtual GPU cannot be had here; the message says why, and what would help."""


def load_device_guard(cache: Path, folder: Path) -> None:
    """Make "cuda" a device that fake tensors can be on, in this process, before torch is imported.

    Nothing is done where torch was built for CUDA or ROCm: it has what is needed.

    Args:
        cache: folder of libraries compiled before; it may be read-only here.
        folder: where one that is not there is compiled to. Who started the process keeps it.

    Raises:
        NotToBeHad: there is no torch, no C++ compiler, or torch's headers have changed.
    """
    spec = PathFinder.find_spec("torch")
    if spec is None or spec.origin is None:
        raise NotToBeHad("torch is not installed in the program's environment")
    torch = Path(spec.origin).parent
    version = (torch / "version.py").read_text()
    if not _cpu_only(version):
        return
    key = hashlib.sha256((version + SOURCE.read_text() + sysconfig.get_platform()).encode()).hexdigest()[:16]
    name = f"device-guard-{key}.so"
    library = cache / name
    if not library.exists():
        library = folder / name
        _compile(torch, library)
    for needed in LIBRARIES:
        ctypes.CDLL(str(torch / "lib" / needed), mode=ctypes.RTLD_GLOBAL)
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


def _cpu_only(version: str) -> bool:
    names: dict[str, object] = {}
    exec(version, names)
    return names.get("cuda") is None and names.get("hip") is None


def _compile(torch: Path, library: Path) -> None:
    compiler = shutil.which(os.environ.get("CXX", "g++")) or shutil.which("c++")
    if compiler is None:
        raise NotToBeHad("this build of torch has no CUDA, and there is no C++ compiler (install g++)")
    made = library.with_suffix(f".{os.getpid()}")
    include = torch / "include"
    command = [compiler, "-O0", "-shared", "-fPIC", "-std=c++20", str(SOURCE), "-o", str(made)]
    command += [
        f"-I{include}",
        f"-I{include / 'torch/csrc/api/include'}",
        f"-L{torch / 'lib'}",
        "-lc10",
        "-ltorch_cpu",
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        first = next((line for line in done.stderr.splitlines() if "error" in line), "no message")
        raise NotToBeHad(f"the device guard does not compile against this version of torch: {first}")
    made.replace(library)
