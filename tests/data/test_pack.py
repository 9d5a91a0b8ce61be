"""A pack is the original, byte for byte, in every format; it survives kills, and says what it cannot be."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader

from hotloop.data import PackedDataset
from hotloop.data.check import check
from hotloop.data.formats.registry import FORMATS
from hotloop.data.pack import pack
from hotloop.data.source.folder import Folder
from hotloop.data.source.source import open_source
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.optimize.dataset.samples import same

from . import objects

every = pytest.mark.parametrize("format_name", FORMATS)


def hashes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("shard-*"))}


@every
def test_a_folder_comes_back_byte_for_byte(format_name: str, files: Path, tmp_path: Path) -> None:
    report = pack(str(files), tmp_path / "out", format_name, samples_per_shard=4)
    source, packed = Folder(files), PackedDataset(tmp_path / "out")
    assert report.num_written == report.plan.num_shards > 2
    originals = [{"__key__": source.sample(at).key, **source.sample(at).fields} for at in range(len(source))]
    assert list(packed) == originals
    assert [packed[at] for at in range(len(packed))] == originals
    assert packed[-1] == originals[-1]
    contents = sorted(
        content for sample in originals for name, content in sample.items() if name != "__key__"
    )
    held = sorted(path.read_bytes() for path in files.rglob("*") if path.is_file() and path.name[0] != ".")
    assert contents == held


@every
def test_a_dataset_object_comes_back_exactly(format_name: str, tmp_path: Path) -> None:
    pack("tests.data.objects:samples", tmp_path / "out", format_name, samples_per_shard=4)
    packed = PackedDataset(tmp_path / "out")
    originals = [objects.samples[at] for at in range(11)]
    for original, sample in zip(originals, packed, strict=True):
        assert type(sample.pop("image")).__module__.startswith("PIL.")
        assert same({k: v for k, v in original.items() if k != "image"} | {"pair": 0}, sample | {"pair": 0})
        assert same(original["pair"][0], sample["pair"][0])
        assert repr(original["pair"][1]) == repr(sample["pair"][1])
    images = [packed[at]["image"].tobytes() for at in range(11)]
    assert images == [original["image"].tobytes() for original in originals]


def test_lists_of_numbers_are_one_field_of_any_length(tmp_path: Path) -> None:
    pack("tests.data.objects:tokens", tmp_path / "out")
    packed = PackedDataset(tmp_path / "out")
    assert packed.plan.structure == ["dict", ["ids", "json"], ["boxes", "json"], ["text", "str"]]
    assert list(packed) == [objects.tokens[at] for at in range(5)]


@every
def test_the_same_samples_give_the_same_bytes(format_name: str, files: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        pack(str(files), tmp_path / name, format_name, samples_per_shard=6)
    assert hashes(tmp_path / "one") == hashes(tmp_path / "two")


@every
def test_loader_workers_read_it(format_name: str, tmp_path: Path) -> None:
    pack("tests.data.objects:made", tmp_path / "out", format_name, samples_per_shard=2)
    packed = PackedDataset(tmp_path / "out")
    assert packed[2][1] == 2  # opened before the fork
    batches = list(DataLoader(packed, batch_size=2, num_workers=2))  # type: ignore[arg-type]
    assert torch.equal(torch.cat([batch[0] for batch in batches]), torch.tensor([0.0, 1.0, 2.0]))
    assert [len(packed), *packed[1]] == [3, torch.tensor(1.0), 1]
    packed.close()


def test_a_folder_of_classes_gives_images_and_classes(images: Path, tmp_path: Path) -> None:
    pack(str(images), tmp_path / "out")
    packed = PackedDataset(tmp_path / "out", transform=lambda image: image.getpixel((0, 0)))
    assert packed.classes == ("cat", "dog")
    assert packed[7] == ((80, 100, 7), 1)


def test_web_dataset_reads_the_shards(images: Path, tmp_path: Path) -> None:
    webdataset = pytest.importorskip("webdataset")
    pack(str(images), tmp_path / "out", samples_per_shard=5)
    urls = str(tmp_path / "out" / "shard-{000000..000001}.tar")
    read = list(webdataset.WebDataset(urls, shardshuffle=False))
    assert [sample["__key__"] for sample in read] == [
        f"{name}/{at}" for name in ("cat", "dog") for at in range(5)
    ]
    assert read[6]["png"] == (images / "dog" / "1.png").read_bytes()
    assert read[6]["cls"] == b"1"
    with tarfile.open(tmp_path / "out" / "shard-000001.tar") as tar:
        assert len(tar.getmembers()) == 10


def test_it_goes_on_where_a_kill_ended_it(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for number in range(400):
        (source / f"{number:04d}.bin").write_bytes(random.Random(number).randbytes(200))
    words = ["data", "pack", str(source), str(tmp_path / "out")]
    command = [sys.executable, "-m", "hotloop", *words, "--samples-per-shard", "10", "--quiet"]
    for _ in range(3):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        before = num_shards(tmp_path / "out")
        while process.poll() is None and num_shards(tmp_path / "out") < before + 3:
            time.sleep(0.001)
        process.kill()
        process.wait()
    report = pack(str(source), tmp_path / "out", samples_per_shard=10)
    assert report.num_kept >= 6
    assert check(tmp_path / "out").passed
    pack(str(source), tmp_path / "whole", samples_per_shard=10)
    assert hashes(tmp_path / "out") == hashes(tmp_path / "whole")


def num_shards(folder: Path) -> int:
    return sum(1 for path in folder.glob("shard-*") if not path.name.endswith(".partial"))


def test_a_torn_entry_is_packed_again(files: Path, tmp_path: Path) -> None:
    pack(str(files), tmp_path / "out", samples_per_shard=5)
    listed = tmp_path / "out" / "shards.jsonl"
    listed.write_bytes(listed.read_bytes()[:-9])
    report = pack(str(files), tmp_path / "out", samples_per_shard=5)
    assert report.num_written == 1
    assert check(tmp_path / "out").passed


@pytest.fixture
def packed(files: Path, tmp_path: Path) -> Path:
    pack(str(files), tmp_path / "out", samples_per_shard=5)
    return tmp_path / "out"


def test_a_check_finds_what_is_damaged_and_missing(packed: Path) -> None:
    with (packed / "shard-000000.tar").open("r+b") as shard:
        shard.seek(600)
        shard.write(b"!")
    (packed / "shard-000001.tar").unlink()
    report = check(packed)
    assert not report.passed
    assert report.damaged_shards == ("shard-000000.tar",)
    assert report.missing_shards == ("shard-000001.tar",)
    with pytest.raises(HotloopError, match=r"holds \d of \d shards"):
        PackedDataset(packed)


def test_packing_again_mends_what_is_damaged(files: Path, tmp_path: Path) -> None:
    before = pack(str(files), tmp_path / "out", samples_per_shard=4)
    sound = hashes(tmp_path / "out")
    shard = tmp_path / "out" / "shard-000001.tar"
    content = bytearray(shard.read_bytes())
    content[600] ^= 0xFF
    shard.write_bytes(content)
    report = pack(str(files), tmp_path / "out", samples_per_shard=4)
    assert (report.num_written, report.num_kept) == (1, before.num_written - 1)
    assert hashes(tmp_path / "out") == sound


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"[" * 100_000], ids=["torn", "bytes", "nested"])
def test_a_damaged_manifest_is_said(content: bytes, packed: Path) -> None:
    (packed / "pack.json").write_bytes(content)
    with pytest.raises(HotloopError, match="is damaged"):
        check(packed)


def test_a_pack_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(HotloopError, match="is not there: a pack is a folder"):
        check(tmp_path / "nope")


def test_a_class_that_needs_arguments_is_said(tmp_path: Path) -> None:
    with pytest.raises(HotloopError, match="a class that cannot be made without arguments") as said:
        pack("hotloop.data:PackedDataset", tmp_path / "out")
    assert "name that: hotloop.data:dataset" in said.value.hint


def test_a_check_says_that_the_original_has_changed(files: Path, packed: Path) -> None:
    (files / "a.txt").write_bytes(b"other")
    report = check(packed)
    assert report.passed
    assert report.num_compared == 0
    assert "has changed" in str(report.original)


def test_a_check_compares_and_times_both(packed: Path) -> None:
    ticks: Iterator[int] = iter(range(10_000))
    report = check(packed, clock=lambda: float(next(ticks)))
    assert report.passed
    assert report.num_compared == report.num_samples
    assert report.speedup is not None
    assert report.speedup.median == 1.0


@pytest.mark.parametrize(
    ("source", "said", "code"),
    [
        ("nowhere", "neither a folder nor a data set", ExitCode.USAGE),
        ("tests.data.objects:augmented", "differs between reads", ExitCode.USAGE),
        (
            "tests.data.objects:uneven",
            'sample 2 of tests.data.objects:uneven is put together as "str"',
            ExitCode.USAGE,
        ),
        ("tests.data.objects:strange", "holds a object, which has no exact form", ExitCode.USAGE),
        ("tests.data.objects:no_indices", "without length or indices", ExitCode.USAGE),
        ("tests.data.objects:missing", "cannot be loaded: AttributeError", ExitCode.PROGRAM_FAILED),
        ("no_such_module:x", "cannot be loaded: ModuleNotFoundError", ExitCode.PROGRAM_FAILED),
    ],
)
def test_what_cannot_be_packed_is_said(source: str, said: str, code: ExitCode, tmp_path: Path) -> None:
    with pytest.raises(HotloopError) as raised:
        pack(source, tmp_path / "out")
    assert said in raised.value.message
    assert raised.value.hint
    assert raised.value.code == code


def test_a_folder_that_holds_something_else_is_left_alone(files: Path, packed: Path, tmp_path: Path) -> None:
    with pytest.raises(HotloopError, match="lies inside of"):
        pack(str(files), files / "out")
    with pytest.raises(HotloopError, match="files that are no pack"):
        pack(str(packed), files)
    with pytest.raises(HotloopError, match="5 samples a shard as tar"):
        pack(str(files), packed, "arrow")
    with pytest.raises(HotloopError, match="is not what was packed"):
        pack("tests.data.objects:made", packed)
    (files / "new").write_bytes(b"1")
    with pytest.raises(HotloopError, match="has changed since"):
        pack(str(files), packed, samples_per_shard=5)
    (tmp_path / "none").mkdir()
    with pytest.raises(HotloopError, match="holds no files"):
        open_source(str(tmp_path / "none"))


def test_a_file_that_changes_while_it_is_packed_is_said(files: Path, tmp_path: Path) -> None:
    source = Folder(files)
    (files / "a.txt").write_bytes(b"longer than before" * 999)
    with pytest.raises(HotloopError, match="somebody writes to it"):
        list(map(source.sample, range(len(source))))


def test_two_at_once_do_not_mix(files: Path, packed: Path) -> None:
    import fcntl

    with (packed / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(HotloopError, match="another pack writes"):
            pack(str(files), packed, samples_per_shard=5)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_said(files: Path, tmp_path: Path) -> None:
    (files / "a.jpg").chmod(0)
    with pytest.raises(HotloopError, match="cannot be read"):
        pack(str(files), tmp_path / "out")


def test_the_manifest_is_json(packed: Path) -> None:
    plan = json.loads((packed / "pack.json").read_text())
    assert plan["format"] == "tar"
    lines = (packed / "shards.jsonl").read_text().splitlines()
    assert sum(json.loads(line)["num_samples"] for line in lines) == plan["num_samples"]
