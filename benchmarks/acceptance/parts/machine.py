"""`hotloop machine` against torch and a stopwatch."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import psutil
import torch

from benchmarks.acceptance.place import Place
from benchmarks.acceptance.row import Row, Skipped


def run(place: Place) -> Iterator[Row | Skipped]:
    """Ask for the card and compare what can be."""
    done = place.hotloop("machine", "--json", "card.json")
    yield Row(
        what="exit code of hotloop machine",
        ours=float(done.returncode),
        truth=0.0,
        within=0.0,
        how="by contract",
    )
    card = json.loads((place.folder / "card.json").read_text())
    card = card.get("card", card)
    yield Row(
        what="memory of the machine, GiB",
        ours=card["identity"]["memory_bytes"] / 2**30,
        truth=psutil.virtual_memory().total / 2**30,
        within=0.01,
        how="psutil",
    )
    names = [one["name"] for one in card["identity"]["accelerators"]]
    yield Row(
        what="accelerators, of those that torch sees",
        # The driver may know of more than this process was given.
        ours=float(min(len(names), torch.cuda.device_count())),
        truth=float(torch.cuda.device_count()),
        within=0.0,
        how="torch",
    )
    if not place.on_gpu:
        yield Skipped("copies to the device", "there is none")
        return
    copies = next(one for one in card["copies"] if one["device"] == "cuda:0")
    host = torch.empty(256 << 20, dtype=torch.uint8, pin_memory=True)
    there = torch.empty_like(host, device="cuda")
    best = 0.0
    for _ in range(10):
        torch.cuda.synchronize()
        began = time.perf_counter()
        there.copy_(host, non_blocking=True)
        torch.cuda.synchronize()
        best = max(best, host.numel() / (time.perf_counter() - began))
    yield Row(
        what="pinned copies to the device, GB/s",
        ours=copies["pinned_to_device_bytes_per_s"]["high"] / 1e9,
        truth=best / 1e9,
        within=0.10,
        how="256 MiB by hand",
    )
