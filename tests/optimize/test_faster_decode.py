"""faster_decode: another library's pixels in PIL's images, as long as they are PIL's pixels."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from PIL import Image, JpegImagePlugin
from torch.utils.data import DataLoader, Dataset

from hotloop.model.deep import Deep, Loading, LoadingPart
from hotloop.model.observation import Phase
from hotloop.optimize.catalogue.input.faster_decode import activation as fast_jpegs
from hotloop.optimize.catalogue.input.faster_decode import row as faster_decode
from hotloop.optimize.catalogue.input.faster_decode.activation import CHECKED, FastJpegs
from hotloop.optimize.catalogue.input.faster_decode.row import FasterDecode
from hotloop.optimize.optimization import DoesNotApply

from .harness import loader, observation

pytest.importorskip("simplejpeg")
N = 40


def jpeg(number: int, mode: str = "RGB") -> bytes:
    """Return a photograph-like file: smooth noise, another size for each."""
    rng = np.random.default_rng(number)
    small = Image.fromarray(rng.integers(0, 255, (9, 12, 3), dtype=np.uint8)).resize((80 + number, 61))
    file = io.BytesIO()
    small.convert(mode).save(file, "JPEG", quality=85, progressive=number % 2 == 1)
    return file.getvalue()


@pytest.fixture
def decode(monkeypatch: pytest.MonkeyPatch) -> Callable[[], FastJpegs]:
    """Install the activation; PIL is as before afterwards."""
    cls: Any = JpegImagePlugin.JpegImageFile
    monkeypatch.setattr(cls, "load", cls.load)

    def install() -> FastJpegs:
        activation = FasterDecode().activation({"decoder": "simplejpeg"})
        assert isinstance(activation, FastJpegs)
        activation.on_torch()
        return activation

    return install


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_pixels_are_those_of_pil(mode: str, decode: Callable[[], FastJpegs]) -> None:
    files = [jpeg(number, mode) for number in range(N)]
    plain = [np.asarray(Image.open(io.BytesIO(raw))) for raw in files]
    activation = decode()
    images = [Image.open(io.BytesIO(raw)) for raw in files]
    for image, pixels in zip(images, plain, strict=True):
        assert np.abs(np.asarray(image).astype(int) - pixels).max() <= 2
        assert (image.mode, image.format) == (mode, "JPEG")
        image.rotate(90).crop((1, 1, 5, 5)).putpixel((0, 0), 3)
    on, evidence = activation.effect()
    assert on
    assert evidence.startswith(f"{N - CHECKED} images were decoded by simplejpeg")


class Images(Dataset[Any]):
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for number in range(N):
            (folder / f"{number}.jpg").write_bytes(jpeg(number))

    def __len__(self) -> int:
        return N

    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.folder / f"{index}.jpg").convert("RGB").resize((16, 16))
        return torch.from_numpy(np.array(image)), index


def test_workers_are_counted_and_files_are_closed(tmp_path: Path, decode: Callable[[], FastJpegs]) -> None:
    dataset = Images(tmp_path)
    fresh = [images for images, _ in DataLoader(dataset, batch_size=8)]
    activation = decode()
    seen = [images for images, _ in DataLoader(dataset, batch_size=8, num_workers=1)]
    assert activation.effect()[0]
    assert all((a.int() - b.int()).abs().max() <= 2 for a, b in zip(fresh, seen, strict=True))
    for number in range(N):
        with Image.open(tmp_path / f"{number}.jpg") as image:
            file = image.fp
            image.load()
        assert file is not None
        assert file.closed


def test_a_decoder_that_is_not_pil_s_is_not_believed(
    decode: Callable[[], FastJpegs], monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(raw: bytes, color: bool) -> Any:
        return np.asarray(Image.open(io.BytesIO(raw))) // 2

    monkeypatch.setitem(fast_jpegs.DECODERS, "simplejpeg", lambda: wrong)
    activation = decode()
    activation._on = False  # `wrong` itself is PIL
    plain = np.asarray(Image.open(io.BytesIO(jpeg(3))))
    image = Image.open(io.BytesIO(jpeg(3)))
    image.load()
    activation._compare(image, wrong(jpeg(3), color=True))
    activation._on = True
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(jpeg(3)))), plain)
    on, why = activation.effect()
    assert not on
    assert "of 255 away from PIL's" in why


@pytest.mark.parametrize("kind", ["draft", "cmyk", "truncated", "png"])
def test_what_is_left_to_pil(kind: str, decode: Callable[[], FastJpegs]) -> None:
    def opened() -> Any:
        if kind == "png":
            file = io.BytesIO()
            Image.new("RGB", (9, 7), (1, 2, 3)).save(file, "PNG")
            return Image.open(io.BytesIO(file.getvalue()))
        if kind == "truncated":
            return Image.open(io.BytesIO(jpeg(4)[:-200]))
        image = Image.open(io.BytesIO(jpeg(4, "CMYK" if kind == "cmyk" else "RGB")))
        if kind == "draft":
            image.draft("RGB", (20, 20))
        return image

    def pixels() -> Any:
        try:
            return np.asarray(opened())
        except OSError as error:
            return str(error)

    fresh = pixels()
    activation = decode()
    activation._num_seen = CHECKED
    assert np.array_equal(pixels(), fresh)
    assert activation._num_decoded.value == 0


def test_where_it_is_proposed(monkeypatch: pytest.MonkeyPatch) -> None:
    part: dict[str, Any] = {"path": None, "line": None, "count_per_sample": 1.0, "time_per_sample_s": 1e-3}
    loading = Loading(
        process="train", num_processes=1, window_s=1, num_batches=9, num_samples=99, sample_s=2e-3,
        parts=(LoadingPart(kind="decode", name="PIL.ImageFile.ImageFile.load", share=0.6, **part),),
        used_bytes_per_sample=1, read_bytes_per_sample=None, reads_per_sample=None,
    )  # fmt: skip
    seen = observation(loaders=(loader(),), shares={Phase.DATA: 0.5})
    decodes = msgspec.structs.replace(seen, deep=Deep(loading=loading))
    (candidate,) = FasterDecode().candidates(decodes)
    assert candidate.params == {"decoder": "simplejpeg"}
    with pytest.raises(DoesNotApply, match="was not looked at"):
        FasterDecode().candidates(seen)
    nothing = msgspec.structs.replace(seen, deep=Deep(loading=msgspec.structs.replace(loading, parts=())))
    with pytest.raises(DoesNotApply, match=r"0.0% of a sample's time"):
        FasterDecode().candidates(nothing)
    monkeypatch.setattr(faster_decode, "installed", lambda: [])
    with pytest.raises(DoesNotApply, match="no faster decoder is installed"):
        FasterDecode().candidates(decodes)
    with pytest.raises(ValueError, match="allowed: simplejpeg, turbojpeg, torchvision"):
        FasterDecode().validate({"decoder": "opencv"})
