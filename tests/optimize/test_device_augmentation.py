"""device_augmentation: the last transforms run on batches, and what a chain is used for beside."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from hotloop.model.deep import Deep, Loading, LoadingPart
from hotloop.model.observation import Phase
from hotloop.optimize.catalogue.input.device_augmentation import batch_transforms
from hotloop.optimize.catalogue.input.device_augmentation import row as device_augmentation
from hotloop.optimize.catalogue.input.device_augmentation.row import DeviceAugmentation
from hotloop.optimize.optimization import DoesNotApply

from .harness import loader, observation


class Flips(torch.nn.Module):
    """Stands for kornia's: to a whole batch."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.flip(-1)


class RandomHorizontalFlip:
    """As torchvision's."""

    p = 1.0

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        return image.flip(-1) if torch.rand(1) < self.p else image


class Normalize(RandomHorizontalFlip):
    mean, std = (0.5,), (0.25,)

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        return (image - 0.5) / 0.25


for cls in (RandomHorizontalFlip, Normalize):
    cls.__module__ = "torchvision.transforms.transforms"


class Another:
    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        return image * 2


class Compose:
    def __init__(self, *transforms: Any) -> None:
        self.transforms = list(transforms)

    def __call__(self, value: Any) -> Any:
        for transform in self.transforms:
            value = transform(value)
        return value


class Images(Dataset[Any]):
    def __init__(self, transform: Any) -> None:
        self.transform = transform

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Any:
        return {"image": self.transform(torch.arange(16.0).view(1, 4, 4) + index), "label": index}


@pytest.fixture(params=["stand-in", "kornia"])
def kornia(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "kornia":
        pytest.importorskip("kornia")
        return

    def module(transforms: Any) -> Any:
        return torch.nn.Sequential(
            *(Flips() if type(one) is RandomHorizontalFlip else _Scaled() for one in transforms)
        )

    monkeypatch.setattr("hotloop.optimize.catalogue.input.device_augmentation.activation.for_batches", module)


class _Scaled(torch.nn.Module):
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return (images - 0.5) / 0.25


@pytest.mark.usefixtures("kornia")
def test_batches_get_what_samples_got() -> None:
    given = {"batch_size": 4, "shuffle": True}
    chain = Compose(Another(), RandomHorizontalFlip(), Normalize())
    torch.manual_seed(3)
    fresh = list(DataLoader(Images(chain), **given))
    activation = DeviceAugmentation().activation({})
    activation.on_root(torch.nn.Linear(1, 1))
    torch.manual_seed(3)
    batches = DataLoader(**activation.on_loader({"dataset": Images(chain), **given}))
    assert [type(one).__name__ for one in chain.transforms] == ["Another"]
    labels = {
        int(label): image
        for batch in fresh
        for label, image in zip(batch["label"], batch["image"], strict=True)
    }
    for batch in map(activation.on_batch, batches):
        for label, image in zip(batch["label"], batch["image"], strict=True):
            assert torch.allclose(image, labels[int(label)], atol=1e-5)
    on, evidence = activation.effect()
    assert on
    assert evidence.startswith("2 batches went through")
    with torch.no_grad():
        batch = next(iter(batches))
        assert activation.on_batch(batch) is batch


@pytest.mark.parametrize(
    ("chain", "keywords", "reason"),
    [
        (Compose(RandomHorizontalFlip(), Another()), {}, "has no counterpart"),
        (
            Compose(lambda image: image.int(), RandomHorizontalFlip()),
            {},
            "no image of floating-point numbers",
        ),
        (Compose(RandomHorizontalFlip()), {"shuffle": False}, "no shuffled loader"),
        (Compose(RandomHorizontalFlip()), {"collate_fn": list}, "no shuffled loader"),
        (None, {}, "holds no chain of transforms"),
    ],
)
def test_what_is_left_alone(chain: Any, keywords: dict[str, Any], reason: str) -> None:
    activation = DeviceAugmentation().activation({})
    before = list(chain.transforms) if chain else []
    activation.on_loader({"dataset": Images(chain), "batch_size": 4, "shuffle": True, **keywords})
    assert (list(chain.transforms) if chain else []) == before
    assert activation.on_batch(7) == 7
    on, why = activation.effect()
    assert not on
    assert reason in why


@pytest.mark.usefixtures("kornia")
def test_a_chain_that_an_evaluation_uses_is_put_together_again() -> None:
    chain = Compose(Another(), RandomHorizontalFlip())
    activation = DeviceAugmentation().activation({})
    activation.on_loader({"dataset": Images(chain), "batch_size": 4, "shuffle": True})
    assert len(chain.transforms) == 1
    activation.on_loader({"dataset": Images(chain), "batch_size": 4})
    assert len(chain.transforms) == 2
    assert activation.effect() == (False, "a loader that does not shuffle uses the same transforms")


def test_where_it_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    part = LoadingPart(
        kind="transform",
        name="RandomCrop",
        path=None,
        line=None,
        count_per_sample=1,
        time_per_sample_s=1e-3,
        share=0.5,
    )
    loading = Loading(
        process="train", num_processes=1, window_s=1, num_batches=9, num_samples=99, sample_s=2e-3, parts=(part,),
        used_bytes_per_sample=1, read_bytes_per_sample=None, reads_per_sample=None,
    )  # fmt: skip
    plain = observation(loaders=(loader(),), shares={Phase.DATA: 0.5})
    seen = msgspec.structs.replace(plain, deep=Deep(loading=loading))
    monkeypatch.setattr(device_augmentation, "is_installed", lambda: True)
    assert [one.params for one in DeviceAugmentation().candidates(seen)] == [{}]
    nothing = msgspec.structs.replace(plain, deep=Deep(loading=msgspec.structs.replace(loading, parts=())))
    for each, reason in ((plain, "was not looked at"), (nothing, "take 0.0% of a sample's time")):
        with pytest.raises(DoesNotApply, match=reason):
            DeviceAugmentation().candidates(each)
    monkeypatch.setattr(device_augmentation, "is_installed", lambda: False)
    with pytest.raises(DoesNotApply, match="Kornia is not installed"):
        DeviceAugmentation().candidates(seen)
    assert batch_transforms.known_suffix([Another(), RandomHorizontalFlip()]) == 1
