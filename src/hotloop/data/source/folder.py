"""A folder of files; files of one folder that differ only in their extension are one sample."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hotloop.data.sample import Sample
from hotloop.model.errors import ExitCode, HotloopError

_IMAGES = frozenset({"jpg", "jpeg", "png", "ppm", "bmp", "pgm", "tif", "tiff", "webp"})
"""The extensions that torchvision's ImageFolder takes."""
_NO_EXTENSION = "bin"


class Folder:
    """The files below a folder, in the order of their names; hidden ones are left out.

    Where the folder holds only folders, and those only images, it is a folder of classes as torchvision's `ImageFolder`
    knows it, and each sample also has its class's number as `cls`.

    Args:
        root: the folder.

    Raises:
        HotloopError: there are no files in it.
    """

    structure: Any = None

    def __init__(self, root: Path) -> None:
        self._root = root
        files = list(_files(root))
        if not files:
            raise HotloopError(f"{root} holds no files", "name the folder that your samples are in")
        self._sizes = {path: size for path, size, _ in files}
        self.fingerprint = _digest(files)
        self._samples = _grouped(self._sizes)
        self.classes = _classes(root, self._samples)

    def __len__(self) -> int:
        """Return how many samples there are."""
        return len(self._samples)

    def files(self) -> dict[Path, int]:
        """Return every file with its size."""
        return {self._root / path: size for path, size in self._sizes.items()}

    def sample(self, index: int) -> Sample:
        """Return one sample.

        Raises:
            HotloopError: a file cannot be read, or is not as long as it was.
        """
        key, files = self._samples[index]
        fields = {extension: self._read(path) for extension, path in files.items()}
        if self.classes is not None:
            fields["cls"] = str(self.classes.index(key.split("/")[0])).encode()
        return Sample(key, fields)

    def forget(self, index: int) -> None:
        """Drop the pages of a sample's files; their names stay known."""
        if hasattr(os, "posix_fadvise"):
            for path in self._samples[index][1].values():
                forget_file(self._root / path)

    def _read(self, path: str) -> bytes:
        try:
            content = (self._root / path).read_bytes()
        except OSError as error:
            raise HotloopError(
                f"{self._root / path} cannot be read: {error.strerror}",
                "make it readable, or move it away, and call again: what is packed already is kept",
                ExitCode.MACHINE,
            ) from error
        if len(content) != self._sizes[path]:
            raise HotloopError(
                f"{self._root / path} had {self._sizes[path]} bytes and has {len(content)}: somebody writes to it",
                "wait until nobody writes to the folder, and call again",
            )
        return content


def forget_file(path: Path) -> None:
    """Drop a file's pages from the page cache; pages that are not written yet stay."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def _files(root: Path) -> Iterator[tuple[str, int, int]]:
    """Yield path, size and time of change of each file; the same order on every file system."""
    for folder, folders, names in os.walk(root, followlinks=True):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = os.path.join(folder, name)
            if not name.startswith(".") and os.path.isfile(path):
                status = os.stat(path)
                yield os.path.relpath(path, root), status.st_size, status.st_mtime_ns


def _digest(files: list[tuple[str, int, int]]) -> str:
    digest = hashlib.sha256()
    for path, size, changed in files:
        digest.update(f"{path}\0{size}\0{changed}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _grouped(paths: dict[str, int]) -> list[tuple[str, dict[str, str]]]:
    """Return the key of each sample with its files by extension.

    WebDataset ends a key at the first dot of a file's name, so that those within a key are escaped; it takes extensions
    in small letters, so that files which differ only in that are samples of their own.
    """
    samples: dict[str, dict[str, str]] = {}
    for path in paths:
        stem, dot, extension = os.path.basename(path).rpartition(".")
        key = _key(os.path.dirname(path), stem if dot else extension)
        field = extension.lower() if dot else _NO_EXTENSION
        if field in samples.get(key, {}) or field == "cls":
            key, field = _key(os.path.dirname(path), os.path.basename(path)), _NO_EXTENSION
        samples.setdefault(key, {})[field] = path
    return list(samples.items())


def _key(folder: str, stem: str) -> str:
    return os.path.join(folder, stem.replace("%", "%25").replace(".", "%2E"))


def _classes(root: Path, samples: list[tuple[str, dict[str, str]]]) -> tuple[str, ...] | None:
    if any(entry.is_file() for entry in root.iterdir() if not entry.name.startswith(".")):
        return None
    if not all(len(files) == 1 and next(iter(files)) in _IMAGES for _, files in samples):
        return None
    return tuple(sorted({key.split("/")[0] for key, _ in samples}))
