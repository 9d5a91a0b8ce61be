"""Small made data in the layouts that the scripts expect; the same bytes every time."""

from __future__ import annotations

import gzip
import hashlib
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

NUM_TRAIN, NUM_TEST = 960, 256
_SEED = 11


def make(name: str, folder: Path) -> None:
    """Write the data of that name into a folder, unless it is there."""
    done = folder / ".made"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        MAKERS[name](folder)
        done.touch()


def _pictures(number: int, shape: tuple[int, ...], classes: int) -> tuple[Any, Any]:
    """Return noise with a stripe that tells the class, so that a loss falls."""
    random = np.random.default_rng(_SEED)
    labels = random.integers(0, classes, number)
    pictures = random.integers(0, 128, (number, *shape), dtype=np.uint8)
    for picture, label in zip(pictures, labels, strict=True):
        picture[..., int(label) % shape[-2], :] = 255
    return pictures, labels


def _mnist(folder: Path, num_train: int = NUM_TRAIN, num_test: int = NUM_TEST) -> None:
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for kind, number in (("train", num_train), ("t10k", num_test)):
        pictures, labels = _pictures(number, (28, 28), 10)
        images = struct.pack(">IIII", 0x803, number, 28, 28) + pictures.tobytes()
        answers = struct.pack(">II", 0x801, number) + labels.astype(np.uint8).tobytes()
        for name, content in ((f"{kind}-images-idx3-ubyte", images), (f"{kind}-labels-idx1-ubyte", answers)):
            (raw / name).write_bytes(content)
            (raw / f"{name}.gz").write_bytes(gzip.compress(content, 1, mtime=0))


def _mnist_whole(folder: Path) -> None:
    """As many as there are in truth."""
    _mnist(folder, 60_000, 10_000)


def _batch(path: Path, number: int, classes: int, label: str) -> None:
    pictures, labels = _pictures(number, (3, 32, 32), classes)
    content = {"data": pictures.reshape(number, -1), label: [int(each) for each in labels]}
    path.write_bytes(pickle.dumps(content, protocol=2))


def _cifar100(folder: Path) -> None:
    base = folder / "cifar-100-python"
    base.mkdir()
    _batch(base / "train", 320, 100, "fine_labels")
    _batch(base / "test", 64, 100, "fine_labels")
    names = {"fine_label_names": [f"class {index}" for index in range(100)]}
    (base / "meta").write_bytes(pickle.dumps(names, protocol=2))


def _cifar10(folder: Path) -> None:
    base = folder / "cifar-10-batches-py"
    base.mkdir()
    for name in (*(f"data_batch_{index}" for index in range(1, 6)), "test_batch"):
        _batch(base / name, 1_000, 10, "labels")
    names = {"label_names": [f"class {index}" for index in range(10)]}
    (base / "batches.meta").write_bytes(pickle.dumps(names, protocol=2))


def _words(number: int) -> str:
    random = np.random.default_rng(_SEED)
    vocabulary = [hashlib.sha256(str(index).encode()).hexdigest()[: 2 + index % 7] for index in range(300)]
    picked = random.zipf(1.4, number) % len(vocabulary)
    words = [vocabulary[index] for index in picked]
    return "\n".join(" ".join(words[at : at + 12]) for at in range(0, number, 12)) + "\n"


def _wikitext(folder: Path) -> None:
    for name, number in (("train", 60_000), ("valid", 4_000), ("test", 4_000)):
        (folder / f"{name}.txt").write_text(_words(number))


def _text(folder: Path) -> None:
    (folder / "text.txt").write_text(_words(4_000))


def _shakespeare(folder: Path) -> None:
    text = _words(20_000)
    letters = sorted(set(text))
    number = {letter: index for index, letter in enumerate(letters)}
    ids = np.array([number[letter] for letter in text], dtype=np.uint16)
    ids[:-5_000].tofile(folder / "train.bin")
    ids[-5_000:].tofile(folder / "val.bin")
    meta = {"vocab_size": len(letters), "itos": dict(enumerate(letters)), "stoi": number}
    (folder / "meta.pkl").write_bytes(pickle.dumps(meta))


def _tokens(folder: Path) -> None:
    for shard in range(3):
        picked = np.random.default_rng(_SEED + shard).zipf(1.4, 60_000) % 512
        picked.astype(np.uint16).tofile(folder / f"data{shard:02}.bin")


def _penn_treebank(folder: Path) -> None:
    (folder / "train.txt").write_text(_words(200_000))


def _series(folder: Path) -> None:
    random = np.random.default_rng(_SEED)
    hours = np.arange(1_600)
    values = np.sin(hours[:, None] / np.arange(4, 11)) + 0.1 * random.standard_normal((len(hours), 7))
    columns = ["date", *(f"V{index}" for index in range(6)), "OT"]
    times = np.datetime64("2020-01-01T00:00") + hours.astype("timedelta64[h]")
    rows = (
        ",".join([str(time).replace("T", " ") + ":00", *(f"{value:.4f}" for value in row)])
        for time, row in zip(times, values, strict=True)
    )
    (folder / "series.csv").write_text("\n".join([",".join(columns), *rows]) + "\n")


def _masks(folder: Path) -> None:
    random = np.random.default_rng(_SEED)
    for name in ("imgs", "masks"):
        (folder / name).mkdir(exist_ok=True)
    for index in range(20):
        picture = random.integers(0, 100, (192, 256, 3), dtype=np.uint8)
        mask = np.zeros((192, 256), np.uint8)
        top, left = random.integers(0, 90, 2)
        mask[top : top + 90, left : left + 120] = 1
        picture[mask == 1] += 120
        Image.fromarray(picture).save(folder / "imgs" / f"{index:03}.png")
        Image.fromarray(mask).save(folder / "masks" / f"{index:03}.png")


def _image_folder(folder: Path) -> None:
    pictures, labels = _pictures(120, (72, 72, 3), 3)
    for index, (picture, label) in enumerate(zip(pictures, labels, strict=True)):
        place = folder / ("validation" if index % 5 == 0 else "train") / f"class_{label}"
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(place / f"{index:03}.png")


def _photographs(folder: Path) -> None:
    """As many as BSDS300 has, of their size: smooth shapes and a little noise, as JPEG."""
    random = np.random.default_rng(_SEED)
    down, across = np.mgrid[0:321, 0:481] / 64
    for kind, number in (("train", 200), ("test", 100)):
        place = folder / "BSDS300" / "images" / kind
        place.mkdir(parents=True)
        for index in range(number):
            waves = [np.sin(a * down + b * across + c) for a, b, c in random.uniform(0, 6, (3, 3))]
            picture = 127 + 90 * np.stack(waves, axis=-1) + random.normal(0, 6, (321, 481, 3))
            Image.fromarray(picture.clip(0, 255).astype(np.uint8)).save(place / f"{index:03}.jpg", quality=90)


def _cora(folder: Path) -> None:
    random = np.random.default_rng(_SEED)
    number, words, classes = 1_500, 160, 7
    labels = random.integers(0, classes, number)
    features = (random.random((number, words)) < 0.03).astype(int)
    features[np.arange(number), labels] = 1
    rows = (
        "\t".join([str(paper), *map(str, row), f"class_{label}"])
        for paper, row, label in zip(range(number), features, labels, strict=True)
    )
    (folder / "cora.content").write_text("\n".join(rows) + "\n")
    # As in the real one every paper cites or is cited: attention over no neighbours is NaN.
    ring = np.stack([np.arange(number), np.roll(np.arange(number), 1)], axis=1)
    cites = np.concatenate([ring, random.integers(0, number, (1_500, 2))])
    (folder / "cora.cites").write_text("".join(f"{cited}\t{citing}\n" for cited, citing in cites))


def _sines(folder: Path) -> None:
    """As the example's own `generate_sine_wave.py`, with fewer and shorter waves."""
    import torch

    phases = np.random.default_rng(_SEED).integers(-80, 80, (20, 1))
    torch.save(np.sin((np.arange(200) + phases) / 20), folder / "traindata.pt")


MAKERS: dict[str, Callable[[Path], None]] = {
    "mnist": _mnist,
    "mnist_whole": _mnist_whole,
    "cifar10": _cifar10,
    "cifar100": _cifar100,
    "wikitext": _wikitext,
    "text": _text,
    "shakespeare": _shakespeare,
    "tokens": _tokens,
    "penn_treebank": _penn_treebank,
    "series": _series,
    "photographs": _photographs,
    "masks": _masks,
    "image_folder": _image_folder,
    "cora": _cora,
    "sines": _sines,
}
