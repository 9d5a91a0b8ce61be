"""Where trace bytes come from: plain, gzip, zip and tar files, one at a time and never as a whole."""

import io
import re
import tarfile
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Protocol

from isal import igzip_lib

from hotloop.model.errors import HotloopError

_GZIP_ERROR: type[Exception] = igzip_lib.error  # type: ignore[assignment]  # the stub names an instance
_GZIP_MAGIC = b"\x1f\x8b"
_COMPRESSED_STEP = 1 << 16
_INFLATED_STEP = 1 << 18
"""Small steps: when a compressed file is damaged, at most this much good text is lost before the damage."""
_BOMB_RATIO = 200
"""The published traces here compress 14 to 36 times; DEFLATE ends at 1032."""
_BOMB_FLOOR = 128 << 20
_TRACE_NAME = re.compile(r"\.json(\.gz)?$", re.IGNORECASE)
_ARCHIVE_NAME = re.compile(r"\.(tar|tar\.gz|tgz|zip)$", re.IGNORECASE)
_MAX_MEMBERS = 16384
"""More files than the largest published training run has ranks."""


class Blocks(Protocol):
    """A stream of bytes that knows what is wrong with it."""

    @property
    def damage(self) -> str | None:
        """What ended the stream early; None: it is whole so far."""
        ...

    def read(self, size: int) -> bytes:
        """The next bytes, fewer than `size` only at the end."""
        ...


class PlainBlocks:
    """Bytes as they are in a file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.damage: str | None = None

    def read(self, size: int) -> bytes:
        """The next bytes."""
        try:
            return self._file.read(size)
        except (OSError, EOFError, zipfile.BadZipFile, tarfile.TarError) as error:
            self.damage = str(error) or type(error).__name__
            return b""


class GzipBlocks:
    """Bytes out of a gzip stream, up to the damage if there is any."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._member: igzip_lib.IgzipDecompressor | None = None
        self._num_in = 0
        self._num_out = 0
        self._carry = b""
        self.damage: str | None = None

    def read(self, size: int) -> bytes:
        """The next inflated bytes."""
        parts: list[bytes] = []
        missing = size
        while missing > 0 and self.damage is None:
            part = self._step(missing)
            if part is None:
                break
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    def _step(self, missing: int) -> bytes | None:
        data = b""
        if self._member is None or self._member.needs_input:
            data = self._carry or self._file.read(_COMPRESSED_STEP)
            self._carry = b""
            self._num_in += len(data)
            if not data:
                if self._member is not None:
                    self.damage = "the gzip stream ends early"
                return None
        if self._member is None:
            self._member = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
        try:
            part: bytes = self._member.decompress(data, max_length=min(missing, _INFLATED_STEP))
        except _GZIP_ERROR as error:
            self.damage = f"the gzip stream is damaged: {error}"
            return None
        self._num_out += len(part)
        self._finish_member()
        if self._num_out > _BOMB_FLOOR and self._num_out > _BOMB_RATIO * self._num_in:
            self.damage = f"the gzip stream inflates more than {_BOMB_RATIO} times; no trace does"
        return part

    def _finish_member(self) -> None:
        if self._member is not None and self._member.eof:
            self._carry = self._member.unused_data
            self._num_in -= len(self._carry)
            self._member = None
            if self._carry and not self._carry.startswith(_GZIP_MAGIC):
                self._carry = b""


class ReadAhead:
    """The same bytes, the next of them read and inflated on a second thread while the last are decoded."""

    def __init__(self, blocks: Blocks, size: int) -> None:
        self._blocks = blocks
        self._size = size
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="hotloop-read")
        self._next = self._pool.submit(blocks.read, size)

    @property
    def damage(self) -> str | None:
        """What ended the stream early."""
        return self._blocks.damage

    def read(self, size: int) -> bytes:  # noqa: ARG002
        """The next bytes; how many was said at the start."""
        data = self._next.result()
        if data:
            self._next = self._pool.submit(self._blocks.read, self._size)
        return data

    def __enter__(self) -> "ReadAhead":
        """Return itself; the thread runs already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for the thread to end."""
        self._pool.shutdown()


def find_files(paths: list[Path]) -> list[Path]:
    """The trace files that are meant: folders stand for the traces in them.

    Raises:
        HotloopError: a path does not exist, or there is no trace in a folder.
    """
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(
                p
                for p in path.rglob("*")
                if (_TRACE_NAME.search(p.name) or _ARCHIVE_NAME.search(p.name)) and p.is_file()
            )
            if not inside:
                raise HotloopError(
                    f"there is no trace in {path}: no file there ends in .json, .json.gz, .tar.gz or .zip",
                    "name the trace files themselves",
                )
            found.extend(inside)
        elif path.is_file():
            found.append(path)
        elif path.exists():
            raise HotloopError(
                f"{path} is no regular file, so it cannot be read as a trace",
                "write what it gives to a file, and name that",
            )
        else:
            raise HotloopError(f"{path} does not exist", "check the spelling of the trace's path")
    return found


def open_traces(path: Path) -> Iterator[tuple[str, Blocks]]:
    """Each trace in a file with its label; each has to be read before the next is asked for."""
    with path.open("rb") as file:
        start = file.read(512)
        file.seek(0)
        if zipfile.is_zipfile(file):
            yield from _zip_members(path, file)
            return
        file.seek(0)
        is_gzip = start.startswith(_GZIP_MAGIC)
        if path.name.endswith((".tar", ".tar.gz", ".tgz")) or start[257:262] == b"ustar":
            yield from _tar_members(path, file, is_gzip)
        else:
            yield path.name, GzipBlocks(file) if is_gzip else PlainBlocks(file)


def _tar_members(path: Path, file: IO[bytes], is_gzip: bool) -> Iterator[tuple[str, Blocks]]:
    stream = io.BufferedReader(_Reading(GzipBlocks(file)), 1 << 18) if is_gzip else file
    try:
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for number, member in enumerate(archive):
                if number >= _MAX_MEMBERS:
                    return
                opened = archive.extractfile(member) if _is_trace(member.name) and member.isfile() else None
                if opened is not None:
                    yield f"{path.name}#{Path(member.name).name}", _blocks(opened, member.name)
    except tarfile.TarError as error:
        raise HotloopError(
            f"{path.name} cannot be read as a tar file: {error}", "unpack it and name the files"
        ) from error


def _zip_members(path: Path, file: IO[bytes]) -> Iterator[tuple[str, Blocks]]:
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist()[:_MAX_MEMBERS]:
            if _is_trace(member.filename):
                with archive.open(member) as opened:
                    yield f"{path.name}#{Path(member.filename).name}", _blocks(opened, member.filename)


def _is_trace(name: str) -> bool:
    base = Path(name).name
    return bool(_TRACE_NAME.search(base)) and not base.startswith("._")


def _blocks(opened: IO[bytes], name: str) -> Blocks:
    return GzipBlocks(opened) if name.endswith(".gz") else PlainBlocks(opened)


class _Reading(io.RawIOBase):
    """Blocks as the file object that `tarfile` wants."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        data = self._blocks.read(len(view))
        view[: len(data)] = data
        return len(data)
