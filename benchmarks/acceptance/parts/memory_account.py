"""Memory, figure by figure: the estimator, the account of the peak, what lies beside it, the end for want of it.

Truths are torch's own counters in the same program run by hand, and the snapshot that torch's viewer opens.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from benchmarks.acceptance.place import Place
from benchmarks.acceptance.row import Row, Skipped
from hotloop.model.observation import Observation

PLAN_ERROR = 0.08
"""The interval that a plan gives itself (docs/memory.md)."""
ACCOUNT_ERROR = 0.03
MIB = 1 << 20
MODELS = ("gpt", "resnet", "unet3d")


def run(place: Place) -> Iterator[Row | Skipped]:
    """Compare each figure with its truth."""
    yield from _planned(place)
    yield from _accounted(place)
    yield from _snapshot(place)
    yield from _ran_out(place)


def _planned(place: Place) -> Iterator[Row | Skipped]:
    if not place.on_gpu:
        yield Skipped("estimator against max_memory_allocated", "a CPU keeps no count of its tensors")
        return
    device = f"{torch.cuda.get_device_properties(0).total_memory / 1e9:.0f}GB"
    for model in MODELS:
        truth = place.by_hand(model, "--steps", "20")
        told = place.folder / f"plan-{model}.json"
        words = ["--device", device, "--seconds", "60", "--json", str(told)]
        place.hotloop("memory", "plan", *words, *place.command(model, "--steps", "20"))
        peak = json.loads(told.read_text())["peaks"][0] if told.exists() else {}
        for figure in ("allocated", "reserved"):
            planned = (peak.get(figure) or {}).get("num_bytes")
            yield Row(
                what=f"{model}: planned, {figure}, MiB",
                ours=None if planned is None else planned / MIB,
                truth=truth["peak_bytes" if figure == "allocated" else "reserved_bytes"] / MIB,
                within=PLAN_ERROR,
                how=f"max_memory_{figure} by hand",
            )


def _accounted(place: Place) -> Iterator[Row | Skipped]:
    for model in ("gpt", "unet3d"):
        seen = place.observe(model, seconds=10, deep=("memory",))
        account = seen.memory.account
        counted = account.peak_bytes if account is not None else None
        if place.on_gpu:
            yield Row(
                what=f"{model}: account of the peak, MiB",
                ours=None if counted is None else counted / MIB,
                truth=place.by_hand(model, "--steps", "20")["peak_bytes"] / MIB,
                within=ACCOUNT_ERROR,
                how="max_memory_allocated by hand",
            )
        else:
            yield Skipped(
                f"{model}: account of the peak",
                "tests/probe/instruments/test_memory.py counts it independently",
            )
        yield Row(
            what=f"{model}: of it unattributed",
            ours=None if account is None else account.unattributed_bytes / max(1, account.peak_bytes),
            truth=ACCOUNT_ERROR,
            within=0.0,
            how="the account's own words",
            at_most=True,
        )
        yield from _beside(place, model, seen)


def _beside(place: Place, model: str, seen: Observation) -> Iterator[Row | Skipped]:
    if not place.on_gpu:
        yield Skipped(
            f"{model}: reserved, and outside the allocator", "a CPU has no caching allocator of torch's"
        )
        return
    device = seen.memory.devices[0]
    yield Row(
        what=f"{model}: reserved, MiB",
        ours=device.reserved_bytes / MIB,
        truth=place.by_hand(model, "--steps", "20")["reserved_bytes"] / MIB,
        within=ACCOUNT_ERROR,
        how="max_memory_reserved by hand",
    )


def _snapshot(place: Place) -> Iterator[Row | Skipped]:
    path = place.folder / "snapshot.pickle"
    words = ["--seconds", "30", "--memory-snapshot", str(path), *place.command("gpt", "--steps", str(10**9))]
    ended = place.hotloop("observe", *words)
    yield Row(
        what="the snapshot opens in torch's viewer",
        ours=float(_opens(path)),
        truth=1.0,
        within=0.0,
        how="torch.cuda._memory_viz" + ("" if path.exists() else f"; {ended.stderr[-200:]}"),
    )


def _opens(path: Path) -> bool:
    from torch.cuda import _memory_viz

    if not path.exists():
        return False
    snapshot: dict[str, Any] = pickle.loads(path.read_bytes())
    events = [event for trace in snapshot["device_traces"] for event in trace]
    shown: Any = _memory_viz
    return bool(events and snapshot["segments"] and shown.trace_plot(snapshot) and shown.segsum(snapshot))


def _ran_out(place: Place) -> Iterator[Row | Skipped]:
    if not place.on_gpu:
        yield Skipped("out of memory", "python -m benchmarks.out_of_memory does it under limits")
        return
    ended = place.hotloop("observe", "--full", *place.command("gpt", "--steps", "100", "--too-much", "12"))
    told = place.folder / "told.json"
    place.hotloop("report", "--json", str(told))
    kept = json.loads(told.read_text()) if told.exists() else {}
    found = kept.get("out_of_memory") or kept.get("observation", {}).get("out_of_memory") or {}
    yield Row(
        what="out of memory: exit code",
        ours=float(ended.returncode),
        truth=3.0,
        within=0.0,
        how="the contract",
    )
    yield Row(
        what="out of memory: held by tensors, MiB",
        ours=found.get("held_bytes", 0) / MIB,
        truth=(found.get("allocated_bytes") or 0) / MIB,
        within=ACCOUNT_ERROR,
        how="memory_allocated at the failure",
    )
    yield Row(
        what="out of memory: its history opens in torch's viewer",
        ours=float(_opens(place.folder / found["snapshot"])) if found.get("snapshot") else 0.0,
        truth=1.0,
        within=0.0,
        how="torch.cuda._memory_viz",
    )
