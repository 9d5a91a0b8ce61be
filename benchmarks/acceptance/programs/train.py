"""A training program that knows its own truth: it stamps its steps on the device's clock, and writes them at its end.

It is what a user's program is: nothing in it knows of hotloop. The stamps are events of the device where there is one
(no synchronization), read after the last step.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from models import Gpt, Launches, ResNet, Unet3d, mlp  # type: ignore[import-not-found]
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

LARGE: dict[str, Any] = {
    "gemm": {"width": 4096, "layers": 4, "batch": 4096},
    "launches": {"num": 200, "batch": 64},
    "resnet": {"blocks": (3, 4, 6, 3), "width": 64, "batch": 64, "side": 224},
    "gpt": {"layers": 6, "width": 768, "heads": 12, "length": 256, "batch": 32},
    "unet3d": {"base": 32, "batch": 2, "side": 96},
}
SMALL: dict[str, Any] = {
    "gemm": {"width": 384, "layers": 4, "batch": 384},
    "launches": {"num": 100, "batch": 8},
    "resnet": {"blocks": (1, 1, 1, 1), "width": 16, "batch": 8, "side": 64},
    "gpt": {"layers": 3, "width": 256, "heads": 4, "length": 64, "batch": 8},
    "unet3d": {"base": 8, "batch": 1, "side": 32},
}


class Made(Dataset[Any]):
    """Samples made from their number, as slowly as a decoder would be."""

    def __init__(self, name: str, size: dict[str, Any], work: int) -> None:
        self.name, self.size, self.work = name, size, work

    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        generator = torch.Generator().manual_seed(index)
        for _ in range(self.work):
            torch.randn(64, 64, generator=generator).sort()
        size = self.size
        if self.name == "gpt":
            text = torch.randint(0, 256, (size["length"] + 1,), generator=generator)
            return text[:-1], text[1:]
        if self.name == "resnet":
            shape: tuple[int, ...] = (3, size["side"], size["side"])
            return torch.randn(shape, generator=generator), torch.tensor(index % 10)
        if self.name == "unet3d":
            shape = (size["side"],) * 3
            return torch.randn(1, *shape, generator=generator), torch.zeros(shape, dtype=torch.long)
        width = size.get("width", 64)
        return torch.randn(width, generator=generator), torch.randn(width, generator=generator)


def build(name: str, size: dict[str, Any]) -> nn.Module:
    """Return a model."""
    if name == "gemm":
        return mlp(size["width"], size["layers"])
    if name == "launches":
        return Launches(size["num"])
    if name == "resnet":
        return ResNet(size["blocks"], size["width"])
    if name == "gpt":
        return Gpt(size["layers"], size["width"], size["heads"], size["length"])
    return Unet3d(size["base"])


def loss_of(name: str, output: Tensor, target: Tensor) -> Tensor:
    """Return the loss of an output."""
    if name == "gpt":
        return functional.cross_entropy(output.flatten(0, 1), target.flatten())
    if name in ("resnet", "unet3d"):
        return functional.cross_entropy(output, target)
    return functional.mse_loss(output, target)


class Stamps:
    """Moments on the device's clock; on a CPU it is the host's."""

    def __init__(self, device: torch.device) -> None:
        self.on_device = device.type == "cuda"
        self.marks: list[Any] = []

    def mark(self) -> None:
        if self.on_device:
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self.marks.append(event)
        else:
            self.marks.append(time.perf_counter())

    def seconds(self) -> list[float]:
        """Return the moments, the first as 0."""
        if not self.marks:
            return []
        first = self.marks[0]
        if not self.on_device:
            return [mark - first for mark in self.marks]
        torch.cuda.synchronize()
        # One after the other: a 32-bit float of milliseconds is coarse after a minute.
        moments = [0.0]
        for before, after in zip(self.marks, self.marks[1:], strict=False):
            moments.append(moments[-1] + before.elapsed_time(after) / 1e3)
        return moments


class Prefetcher:
    """Copies the next batch on a stream of its own while this one computes."""

    def __init__(self, batches: Iterator[Any], device: torch.device) -> None:
        self.batches, self.device, self.stream = batches, device, torch.cuda.Stream(device)
        self.fetch()

    def fetch(self) -> None:
        with torch.cuda.stream(self.stream):
            self.next = [part.to(self.device, non_blocking=True) for part in next(self.batches)]

    def __next__(self) -> Any:
        torch.cuda.current_stream(self.device).wait_stream(self.stream)
        batch = self.next
        self.fetch()
        return batch


def batches_of(args: argparse.Namespace, size: dict[str, Any], device: torch.device) -> Iterator[Any]:
    """Yield batches: one and the same, or from a loader."""
    data = Made(args.model, size, args.decode)
    if not args.loader:
        one = [
            torch.stack(parts).to(device)
            for parts in zip(*(data[i] for i in range(size["batch"])), strict=True)
        ]
        while True:
            yield one
    loader = DataLoader(
        data,
        size["batch"],
        num_workers=args.workers,
        pin_memory=args.pin,
        persistent_workers=args.workers > 0,
    )
    while True:
        yield from loader


def options() -> argparse.Namespace:
    """Return what the program was told."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=[*LARGE])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--size", default="{}", help="JSON: other sizes than usual")
    parser.add_argument("--truth", help="the file of the truth, in $ACCEPTANCE_FOLDER")
    parser.add_argument("--loader", action="store_true")
    parser.add_argument("--prefetch", action="store_true")
    parser.add_argument("--phases", action="store_true", help="stamp the phases too")
    parser.add_argument("--scaler", action="store_true")
    parser.add_argument("--ranks", action="store_true", help="DistributedDataParallel")
    parser.add_argument("--hold", type=int, default=0, help="MiB held beside the model")
    parser.add_argument(
        "--too-much", type=int, default=-1, help="the step at which memory is asked for without end"
    )
    parser.add_argument("--decode", type=int, default=0, help="how slowly a sample is made")
    # What a person would change by hand.
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--tf32", action="store_true")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--autotune", action="store_true")
    parser.add_argument("--compile", choices=["default", "reduce-overhead", "max-autotune-no-cudagraphs"])
    parser.add_argument("--fused", action="store_true")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--pin", action="store_true")
    return parser.parse_args()


def prepared(args: argparse.Namespace, size: dict[str, Any], device: torch.device) -> nn.Module:
    """Return the model, changed by hand as asked."""
    model = build(args.model, size).to(device)
    if args.tf32:
        torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.benchmark = args.autotune
    if args.channels_last:
        layout = torch.channels_last_3d if args.model == "unet3d" else torch.channels_last
        model = model.to(memory_format=layout)
    if args.ranks:
        torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
        model = nn.parallel.DistributedDataParallel(model)
    if args.compile:
        model.compile(mode=None if args.compile == "default" else args.compile)
    return model


def main() -> None:
    """Train."""
    args = options()
    torch.manual_seed(0)
    device = torch.device(args.device)
    size = {**(LARGE if device.type == "cuda" else SMALL)[args.model], **json.loads(args.size)}
    model = prepared(args, size, device)
    fused = {"fused": True} if args.fused else {}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, **fused)
    scaler = (
        torch.amp.GradScaler(device.type, init_scale=2.0**24, growth_interval=10**6) if args.scaler else None
    )
    held = torch.ones(args.hold << 18, device=device) if args.hold else None
    stamps, phases, losses = Stamps(device), Stamps(device), []

    def stamp() -> None:
        if args.phases:
            phases.mark()

    def end_of_step(*_: Any) -> None:  # before any hook of others'
        stamps.mark()
        stamp()

    optimizer.register_step_post_hook(end_of_step)
    batches = batches_of(args, size, device)
    source = Prefetcher(batches, device) if args.prefetch and device.type == "cuda" else batches
    hoard: list[Tensor] = []
    half = torch.float16 if args.scaler else torch.bfloat16

    for step in range(args.steps):
        x, target = (part.to(device, non_blocking=args.pin) for part in next(source))
        if args.channels_last:
            x = x.contiguous(memory_format=torch.channels_last_3d if x.dim() == 5 else torch.channels_last)
        while step == args.too_much:
            hoard.append(torch.ones(1 << 40 if device.type == "cpu" else 1 << 30, device=device))
        optimizer.zero_grad()
        stamp()
        with torch.autocast(device.type, half, enabled=args.bf16 or (args.scaler and device.type == "cuda")):
            output = model(x)
        stamp()
        loss = loss_of(args.model, output.float(), target)
        losses.append(loss.detach())
        if scaler is None:
            loss.backward()
            stamp()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            if step in (3, 7):  # gradients that overflow
                next(iter(model.parameters())).grad.fill_(float("inf"))
            scaler.step(optimizer)
            scaler.update()
    del held
    write(args, device, stamps, phases, losses)


def write(
    args: argparse.Namespace, device: torch.device, stamps: Stamps, phases: Stamps, losses: Any
) -> None:
    """Write the truth."""
    if args.truth is None or int(os.environ.get("RANK", "0")):
        return
    on_device = device.type == "cuda"
    truth = {
        "stamps_s": stamps.seconds(),
        "phases_s": phases.seconds(),
        "losses": torch.stack(losses).double().cpu().tolist(),
        "peak_bytes": torch.cuda.max_memory_allocated(device)
        if on_device
        else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "reserved_bytes": torch.cuda.max_memory_reserved(device) if on_device else None,
        "device": torch.cuda.get_device_name(device) if on_device else "cpu",
        "torch": torch.__version__,
    }
    path = Path(os.environ["ACCEPTANCE_FOLDER"]) / args.truth
    part = path.with_suffix(".part")
    part.write_text(json.dumps(truth))
    part.replace(path)


if __name__ == "__main__":
    main()
