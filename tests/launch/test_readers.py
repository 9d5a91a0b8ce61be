"""A pipe without a reader is told from one with a reader, and from what is no pipe."""

from __future__ import annotations

import os
from pathlib import Path

from hotloop.launch.readers import nobody_reads


def test_a_pipe_is_read_until_its_reader_is_gone() -> None:
    reader, writer = os.pipe()
    try:
        assert not nobody_reads(writer)
        os.close(reader)
        assert nobody_reads(writer)
    finally:
        os.close(writer)
    assert not nobody_reads(writer), "no descriptor any more"


def test_a_file_is_no_pipe(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file:
        assert not nobody_reads(file.fileno())
