"""Ten kinds of input-bound data sets: files are made once, and read for each sample."""

from __future__ import annotations

import csv
import random
import time
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset

N = 512


class Compose:
    def __init__(self, transforms: list[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, value: Any) -> Any:
        for transform in self.transforms:
            value = transform(value)
        return value


def resized(image: Image.Image) -> Image.Image:
    return image.resize((72, 72), Image.Resampling.BILINEAR)


def center(image: Image.Image) -> Image.Image:
    return image.crop((4, 4, 68, 68))


def random_crop(image: Image.Image) -> Image.Image:
    x, y = random.randint(0, 8), random.randint(0, 8)
    return image.crop((x, y, x + 64, y + 64))


def random_flip(image: Image.Image) -> Image.Image:
    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if random.random() < 0.5 else image


def to_tensor(image: Image.Image) -> torch.Tensor:
    return torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous().float().div(255)


class Source(Dataset[Any]):
    """A data set of `length` samples; its files lie below a folder, where it makes them if they are not there yet."""

    length = N

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.random = np.random.default_rng(0)
        made = folder / ".made"
        if not made.exists():
            self.make()
            made.touch()
        self.begin()
        del self.random

    def make(self) -> None:
        """Write the files."""

    def begin(self) -> None:
        """Set up what samples are made from."""

    def __len__(self) -> int:
        return self.length


class Jpegs(Source):
    transforms: tuple[Callable[[Any], Any], ...] = (resized, center, to_tensor)

    def make(self) -> None:
        for at in range(self.length):
            noise = self.random.integers(0, 256, (24, 32, 3), dtype=np.uint8)
            Image.fromarray(noise).resize((256, 192)).save(self.folder / f"{at}.jpg", quality=90)

    def begin(self) -> None:
        self.transform = Compose(list(self.transforms))

    def __getitem__(self, index: int) -> Any:
        with Image.open(self.folder / f"{index}.jpg") as image:
            return self.transform(image.convert("RGB")), index % 4


class Augmented(Jpegs):
    """Its chain is its own, as torchvision's data sets keep theirs."""

    transforms = (resized, random_crop, random_flip, to_tensor)


class SmallFiles(Source):
    def make(self) -> None:
        for at in range(self.length):
            np.save(self.folder / f"{at}.npy", self.random.normal(size=256).astype(np.float32))

    def __getitem__(self, index: int) -> Any:
        return torch.from_numpy(np.load(self.folder / f"{index}.npy")), index % 4


class CsvRows(Source):
    length = 4 * N

    def make(self) -> None:
        with (self.folder / "rows.csv").open("w", newline="") as file:
            csv.writer(file).writerows(self.random.normal(size=(self.length, 32)).tolist())

    def begin(self) -> None:
        self.lines = (self.folder / "rows.csv").read_text().splitlines()

    def __getitem__(self, index: int) -> Any:
        return torch.tensor([float(word) for word in self.lines[index].split(",")]), index % 4


class Hdf5(Source):
    def make(self) -> None:
        with h5py.File(self.folder / "rows.h5", "w") as file:
            file["x"] = self.random.normal(size=(self.length, 512)).astype(np.float32)

    def begin(self) -> None:
        self.file: Any = h5py.File(self.folder / "rows.h5", "r")

    def __getitem__(self, index: int) -> Any:
        return torch.from_numpy(self.file["x"][index]), index % 4


class Audio(Source):
    def make(self) -> None:
        for at in range(self.length):
            with wave.open(str(self.folder / f"{at}.wav"), "wb") as file:
                file.setparams((1, 2, 8000, 0, "NONE", ""))
                file.writeframes(self.random.integers(-999, 999, 8000, dtype=np.int16).tobytes())

    def __getitem__(self, index: int) -> Any:
        with wave.open(str(self.folder / f"{index}.wav"), "rb") as file:
            samples = np.frombuffer(file.readframes(8000), np.int16).astype(np.float32)
        spectrum = torch.stft(
            torch.from_numpy(samples), 256, window=torch.hann_window(256), return_complex=True
        )
        return spectrum.abs().mean(1), index % 4


class Tokens(Source):
    length = 4 * N

    def make(self) -> None:
        self.random.integers(0, 999, self.length * 64, dtype=np.uint16).tofile(self.folder / "tokens.bin")

    def __getitem__(self, index: int) -> Any:
        tokens = np.memmap(self.folder / "tokens.bin", dtype=np.uint16, mode="r")
        return torch.from_numpy(tokens[index * 64 : index * 64 + 64].astype(np.float32)), index % 4


class Frames(Source):
    length = 128

    def make(self) -> None:
        for at in range(self.length):
            noise = self.random.integers(0, 256, (8, 12, 16, 3), dtype=np.uint8)
            frames = [Image.fromarray(each).resize((96, 72)) for each in noise]
            frames[0].save(self.folder / f"{at}.gif", save_all=True, append_images=frames[1:])

    def __getitem__(self, index: int) -> Any:
        with Image.open(self.folder / f"{index}.gif") as video:
            frames = []
            for at in range(4):
                video.seek(2 * at)
                frames.append(to_tensor(video.convert("RGB").resize((32, 32))))
        return torch.stack(frames), index % 4


class Lists(Source):
    length = 8 * N

    def begin(self) -> None:
        self.rows = self.random.normal(size=(self.length, 64)).tolist()

    def __getitem__(self, index: int) -> Any:
        return torch.tensor(self.rows[index]), index % 4


class Remote(SmallFiles):
    def __getitem__(self, index: int) -> Any:
        time.sleep(0.002)  # a round trip
        return super().__getitem__(index)


PROGRAMS: dict[str, type[Source]] = {
    "JPEG folder": Jpegs,
    "many small files": SmallFiles,
    "CSV rows": CsvRows,
    "HDF5 random reads": Hdf5,
    "audio decode": Audio,
    "token files": Tokens,
    "video frames": Frames,
    "tabular lists": Lists,
    "remote mount, 2 ms": Remote,
    "augmentation": Augmented,
}
