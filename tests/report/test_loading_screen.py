"""Where a sample's time goes, on the terminal: within 80 columns, whatever the names."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from hotloop.model.deep import Loading, LoadingPart
from hotloop.report.sections.lines import loading
from hotloop.report.terminal.walk import render_blocks

from .snapshots import reads


def part(kind: str, name: str, share: float, **changes: Any) -> LoadingPart:
    plain: dict[str, Any] = {
        "path": None,
        "line": None,
        "count_per_sample": 1.0,
        "time_per_sample_s": share / 100,
    }
    return LoadingPart(kind=kind, name=name, share=share, **{**plain, **changes})


def screen(**changes: Any) -> str:
    seen = Loading(
        **{
            "process": "worker", "num_processes": 2, "window_s": 1.0, "num_batches": 10, "num_samples": 1280,
            "sample_s": 0.01, "used_bytes_per_sample": 602112.0, "read_bytes_per_sample": 110000.0,
            "reads_per_sample": 4.2, "padding": 0.0, "private_bytes_per_worker": 9e7,
            "parts": (
                part("transform", "RandomResizedCropAndManyWords", 0.5, random=True, path="/home/me/train.py", line=31),
                part("decode", "PIL.ImageFile.load", 0.3),
                part("own", "ImagesWithAVeryLongName.__getitem__", 0.199, path="/a/long/way/to/data.py", line=7),
                part("collate", "default_collate", 0.001),
            ),
            **changes,
        }
    )  # fmt: skip
    out = io.StringIO()
    Console(file=out, width=80).print(render_blocks(list(loading(seen))))
    return out.getvalue()


def test_it_fits_and_says_what_was_seen() -> None:
    text = screen()
    assert reads("observe_loading", "".join(f"{line.rstrip()}\n" for line in text.splitlines()))
    assert max(map(len, text.splitlines())) <= 80
    assert "10.0 ms in 2 loader workers (1,280 samples)" in text
    assert "random    RandomResizedCrop" in text
    assert "train.py:31" in text
    assert "a sample  588 KiB of tensors, 107 KiB of files in 4 reads" in text
    assert "a worker  85.8 MiB of memory of its own" in text
    assert "default_collate" not in text, "it is next to nothing"
    assert "padding" not in text


def test_what_is_not_there_is_not_said() -> None:
    text = screen(process="train", reads_per_sample=0.01, private_bytes_per_worker=None, padding=0.4)
    assert "in the training process" in text
    assert "reads" not in text
    assert "a worker" not in text
    assert "40.0% of a batch is padding to its longest sample" in text


def test_bytes_that_were_not_measured_have_no_row_and_padding_beyond_has_one() -> None:
    text = screen(used_bytes_per_sample=None, reads_per_sample=None, padding_beyond=0.3)
    assert "of tensors" not in text
    assert "padding   30.0% of a batch is padding beyond its longest sample" in text
    assert screen(used_bytes_per_sample=None).count("a sample  107 KiB of files in 4 reads") == 1
