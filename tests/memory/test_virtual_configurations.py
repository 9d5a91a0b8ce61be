"""What a configuration switches on in the process of a virtual GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import torch
from torch import nn

from hotloop.probe.virtual_gpu.caching_allocator import CachingAllocator
from hotloop.probe.virtual_gpu.configurations import Configuration, repeated_blocks


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)


def test_blocks_of_all_stages_are_recomputed_and_of_nested_ones_the_outer() -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.ModuleList(Block() for _ in range(2))
            self.norm = nn.LayerNorm(4)

    stages = [nn.Sequential(*(Block() for _ in range(num))) for num in (2, 3)]
    model = nn.Sequential(nn.Linear(4, 4), *stages, nn.ModuleList(Outer() for _ in range(2)))
    assert [type(each).__name__ for each in repeated_blocks(model)] == ["Block"] * 5 + ["Outer"] * 2
    assert repeated_blocks(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))) == []
    written_inline = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.ReLU()) for _ in range(3)))
    assert len(repeated_blocks(written_inline)) == 3


def test_two_encoders_of_one_class_are_models_with_blocks_and_experts_belong_to_their_layer() -> None:
    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks, self.head = nn.ModuleList(Block() for _ in range(3)), nn.Linear(4, 4)

    class Pair(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key = Encoder(), Encoder()

    assert [type(each).__name__ for each in repeated_blocks(Pair())] == ["Block"] * 6
    layers = nn.Sequential(*(Encoder() for _ in range(2)))
    assert [type(each).__name__ for each in repeated_blocks(layers)] == ["Encoder"] * 2


@contextlib.contextmanager
def own_autocast() -> Iterator[None]:
    """What `torch.autocast("cuda", torch.float16)` does where there is a device."""
    before = torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
    torch.set_autocast_enabled("cuda", True)
    torch.set_autocast_dtype("cuda", torch.float16)
    yield
    torch.set_autocast_enabled("cuda", before[0])
    torch.set_autocast_dtype("cuda", before[1])


def half_precision() -> Any:
    """Return what is called with True before a forward, and with False before its backward."""
    training = SimpleNamespace(around_loss=[])
    Configuration({"precision": "bfloat16"}, cast("Any", training), cast("Any", None)).on()
    return training.around_loss[0]


def test_half_precision_ends_with_the_backward_as_the_program_had_it() -> None:
    around = half_precision()
    around(True)
    assert (torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")) == (True, torch.bfloat16)
    around(False)
    assert not torch.is_autocast_enabled("cuda")


def test_autocast_of_the_program_around_its_whole_loop_stays_on() -> None:
    around = half_precision()
    with own_autocast():
        around(True)
        around(False)
        assert (torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")) == (True, torch.float16)


def test_autocast_of_the_program_that_ends_before_the_backward_stays_off() -> None:
    around = half_precision()
    with own_autocast():
        around(True)
    around(False)
    assert not torch.is_autocast_enabled("cuda")


def test_a_program_that_resets_its_peaks_does_not_reset_ours() -> None:
    allocator = CachingAllocator()
    allocator.allocate(1, 64 << 20)
    allocator.free(1)
    allocator.reset_peaks()
    assert (allocator.told_allocated, allocator.peak_allocated) == (0, 64 << 20)
