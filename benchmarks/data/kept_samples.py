"""What keeping samples brings on ten input-bound programs, beside the same by hand.

    python -m benchmarks.data.kept_samples

In one process the epochs of the program as it is, with its samples kept, and with a cache written by hand take turns.
By hand, whole samples are collated once and a batch is an index of rows, without a DataLoader; decoded images that are
augmented are kept as a list. Prints Markdown.
"""

from __future__ import annotations

import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import torch
from torch import nn
from torch.utils.data import DataLoader, default_collate

from benchmarks.data.input_bound_programs import PROGRAMS, Augmented, Source
from hotloop.machine.host.identity import identity
from hotloop.optimize.catalogue.input.cached_preprocessing.kept_prefix import KeptPrefix
from hotloop.optimize.dataset.dataset_cache import DatasetCache
from hotloop.optimize.dataset.keep import KeptDataset

BATCH, ROUNDS = 32, 8
MAX_SHARE = 0.25


def main() -> None:
    torch.set_num_threads(1)
    print(
        f"# Samples that are kept\n\n{identity().cpu_model}, {identity().num_cores} cores, one thread. ",
        end="",
    )
    print(
        f"Epochs in turns, {ROUNDS} rounds; ratios are of a whole epoch with its training steps, median [of the rounds,"
    )
    print("lowest, highest].\n")
    print("| program | row | kept, over as it is | by hand, over as it is | kept over by hand |")
    print("|---|---|---|---|---|")
    caches = {
        keep: DatasetCache(MAX_SHARE, in_process=False, on=False, keep=keep)
        for keep in (KeptDataset, KeptPrefix)
    }
    for cache in caches.values():
        cache.on_torch()
    with tempfile.TemporaryDirectory() as folder:
        for name, make in PROGRAMS.items():
            dataset = make(Path(folder) / name)
            is_prefix = isinstance(dataset, Augmented)
            row = "cached_preprocessing" if is_prefix else "dataset_in_memory"
            print(
                f"| {name} | {row} | {compared(dataset, caches[KeptPrefix if is_prefix else KeptDataset])} |",
                flush=True,
            )
        print(f"\n{memory(Path(folder), caches[KeptDataset])}")


def compared(dataset: Source, cache: DatasetCache) -> str:
    train = _trainer(dataset)
    loader: Any = DataLoader(dataset, batch_size=BATCH, shuffle=True)
    by_hand = _augmented_by_hand(dataset) if isinstance(dataset, Augmented) else _rows_by_hand(dataset)
    cache.switch(True)
    next(iter(loader))
    on, said = cache.effect()
    assert on, said
    seconds: dict[str, list[float]] = {"original": [], "kept": [], "hand": []}
    arms: list[tuple[str, bool, Callable[[], Any]]] = [
        ("original", False, lambda: loader),
        ("kept", True, lambda: loader),
        ("hand", False, by_hand),
    ]
    for turn in range(ROUNDS):
        for name, on, batches in arms if turn % 2 else reversed(arms):
            cache.switch(on)
            start = time.perf_counter()
            train(batches())
            seconds[name].append(time.perf_counter() - start)
    cache.switch(False)
    pairs = [("original", "kept"), ("original", "hand"), ("hand", "kept")]
    shown = [_ratio(seconds[before], seconds[after]) for before, after in pairs]
    return " | ".join(shown)


def _ratio(before: list[float], after: list[float]) -> str:
    ratios = [a / b for a, b in zip(before, after, strict=True)]
    return f"{math.exp(statistics.median(map(math.log, ratios))):.2f} [{min(ratios):.2f}, {max(ratios):.2f}]"


def _trainer(dataset: Source) -> Callable[[Any], None]:
    """A small model: half of what loading costs, or less."""
    example = dataset[0][0]
    model = nn.Sequential(nn.Flatten(), nn.Linear(example.numel(), 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)

    def train(batches: Any) -> None:
        for x, y in batches:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()

    return train


def _rows_by_hand(dataset: Source) -> Callable[[], Iterator[Any]]:
    x, y = default_collate([dataset[at] for at in range(len(dataset))])

    def batches() -> Iterator[Any]:
        for rows in torch.randperm(len(x)).split(BATCH):
            yield x[rows], y[rows]

    return batches


def _augmented_by_hand(dataset: Augmented) -> Callable[[], Any]:
    fixed, *rest = dataset.transform.transforms
    dataset.transform.transforms = [fixed]
    kept = [dataset[at] for at in range(len(dataset))]
    dataset.transform.transforms = [fixed, *rest]

    class ByHand(torch.utils.data.Dataset[Any]):
        def __len__(self) -> int:
            return len(kept)

        def __getitem__(self, index: int) -> Any:
            image, label = kept[index]
            for transform in rest:
                image = transform(image)
            return image, label

    loader: Any = DataLoader(ByHand(), batch_size=BATCH, shuffle=True)
    return lambda: loader


class Large(Source):
    """400 MB of samples."""

    length = 4_000

    def __getitem__(self, index: int) -> Any:
        return torch.full((25_000,), float(index)), index % 4


def memory(folder: Path, cache: DatasetCache) -> str:
    """Say what workers of a kept data set hold for themselves."""
    cache.switch(True)
    loader: Any = DataLoader(Large(folder / "large"), batch_size=BATCH, shuffle=True, num_workers=4)
    before = psutil.Process().memory_info().rss
    batches = iter(loader)
    for _ in range(len(loader) - 1):
        next(batches)
    grown = psutil.Process().memory_info().rss - before
    own = [child.memory_full_info().uss for child in psutil.Process().children() if child.pid != os.getpid()]
    return (
        f"Memory: 400 MB of samples kept, 4 workers, one epoch: the training process grew by {grown / 1e6:.0f} MB, "
        f"the workers hold {', '.join(f'{each / 1e6:.0f}' for each in own)} MB of their own."
    )


if __name__ == "__main__":
    main()
