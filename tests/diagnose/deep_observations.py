"""Observations with deep windows: what was seen of a program's call sites and stacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from hotloop.model.deep import CallSite, CallSites, Deep, Frame, HostSamples, Loading, LoadingPart, Sample
from hotloop.model.line_work import LineWork, StepWork
from hotloop.model.observation import Observation

from .observations import FINE, STEP_S, with_loader, with_phases

SCRIPT = "train.py"
_MAIN, _STEP, _METRICS, _DATASET, _COUNT = (
    Frame(SCRIPT, 60, "main"),
    Frame(SCRIPT, 41, "step"),
    Frame(SCRIPT, 43, "step"),
    Frame("data.py", 9, "__getitem__"),
    Frame(SCRIPT, 12, "metrics"),
)


_FETCHER = Frame("/lib/torch/utils/data/_utils/fetch.py", 52, "fetch", "torch")
_TRAINER = Frame("/lib/site-packages/transformers/trainer.py", 900, "train", "library")
_HOOK = Frame(str(Path(__file__).with_name("host_code_program.py")), 9, "hook")
_CALL = Frame("/lib/torch/nn/modules/module.py", 1787, "_call_impl", "torch")
_STEP_OF_TORCH = Frame("/lib/torch/optim/optimizer.py", 526, "wrapper", "torch")
_CHOOSING = Frame("/lib/torch/utils/data/dataloader.py", 715, "_next_index", "torch")
_SAMPLER = Frame("data.py", 21, "__iter__")
_GETTING = Frame("/lib/torch/utils/data/dataloader.py", 1291, "_try_get_data", "torch")
_WAITING = Frame("/lib/python3.11/multiprocessing/connection.py", 947, "wait", "library")
_ENDING = Frame("/lib/torch/utils/data/dataloader.py", 1654, "_shutdown_workers", "torch")
FETCH, FRAMEWORK, CALL, HOOK, STEPPING, CHOOSING, SAMPLER, GETTING, WAITING, ENDING = range(5, 15)
"""The numbers of their frames."""


def site(line: int, share: float, **changes: Any) -> CallSite:
    """Return a call at a line that takes a share of the step."""
    spent = share * STEP_S
    fields: dict[str, Any] = {
        "path": SCRIPT, "line": line, "function": "main", "call": ".item()", "kind": "sync", "device": "cpu",
        "count_per_step": 3.0, "time_per_step_s": spent, "low_s": 0.9 * spent, "high_s": 1.1 * spent,
    }  # fmt: skip
    return CallSite(**{**fields, **changes})


def with_sites(*sites: CallSite, observation: Observation = FINE) -> Observation:
    """Return an observation whose call sites are known."""
    seen = CallSites(num_steps=20, window_s=1.0, sites=sites)
    return msgspec.structs.replace(observation, deep=Deep(call_sites=seen))


def with_stacks(
    observation: Observation, *samples: tuple[tuple[int, ...], str, str | None, int]
) -> Observation:
    """Return an observation with sampled stacks: frames, process, phase and number of samples."""
    host = HostSamples(
        num_steps=20,
        window_s=2.0,
        interval_s=0.005,
        lines=(),
        frames=(
            _MAIN,
            _STEP,
            _METRICS,
            _DATASET,
            _COUNT,
            _FETCHER,
            _TRAINER,
            _CALL,
            _HOOK,
            _STEP_OF_TORCH,
            _CHOOSING,
            _SAMPLER,
            _GETTING,
            _WAITING,
            _ENDING,
        ),
        samples=tuple(
            Sample(stack, process, phase, spent_s=num * 0.005, num=num)
            for stack, process, phase, num in samples
        ),
    )
    return msgspec.structs.replace(observation, deep=Deep(host=host))


def with_work(observation: Observation, **work: float) -> Observation:
    """Return an observation in which the work of line 41 was followed."""
    fields = {
        "runs": 1.0,
        "operators": 100.0,
        "nodes": 100.0,
        "forward_s": 0.02,
        "forward_host_s": 0.0,
        **work,
    }
    assert observation.deep is not None
    line = LineWork(path="train.py", line=41, function="step", **fields)
    seen = StepWork(num_steps=2, window_s=0.2, backward_s=0.06, lines=(line,))
    return msgspec.structs.replace(
        observation, deep=msgspec.structs.replace(observation.deep, line_work=seen)
    )


def with_parts_of_a_sample(observation: Observation, *parts: dict[str, Any], **changes: Any) -> Observation:
    """Return an observation whose samples were timed: 10 ms each in the training process, divided as asked."""
    plain: dict[str, Any] = {"path": None, "line": None, "count_per_sample": 1.0}
    loading: dict[str, Any] = {
        "process": "train", "num_processes": 1, "window_s": 1.0, "num_batches": 10, "num_samples": 100,
        "sample_s": 0.01, "used_bytes_per_sample": 3e5, "read_bytes_per_sample": 1e6, "reads_per_sample": 4.0,
        "parts": tuple(
            LoadingPart(**{**plain, "time_per_sample_s": 0.01 * part["share"], **part}) for part in parts
        ),
    }  # fmt: skip
    return msgspec.structs.replace(observation, deep=Deep(loading=Loading(**{**loading, **changes})))


METRICS = with_stacks(
    with_phases(other=0.4),
    ((0, 1), "train", "forward", 60),
    ((0, 2, 4), "train", "other", 38),
    ((0,), "train", "other", 2),
)
"""Line 12, called from line 43, holds most of what is in no phase; `main` holds that and the forward."""

CASES = {
    "host-code-in-model": with_stacks(
        FINE, ((0, CALL, HOOK), "train", "forward", 30), ((0, CALL), "train", "backward", 70)
    ),
    "sync-in-step": with_sites(site(30, 0.2)),
    "tensor-creation-in-step": with_sites(
        site(31, 0.2, kind="create", call="torch.tensor", bytes_per_step=64.0)
    ),
    "copy-in-step": with_sites(site(32, 0.2, kind="copy", call=".to()", bytes_per_step=4e6)),
    "hot-line-outside-phases": METRICS,
    "slow-transform": with_parts_of_a_sample(
        with_loader(with_phases(data=0.6)),
        {"kind": "transform", "name": "Blur", "path": SCRIPT, "line": 14, "share": 0.5, "random": True},
        {"kind": "decode", "name": "PIL.ImageFile.load", "share": 0.3},
    ),
    "same-work-each-epoch": with_parts_of_a_sample(
        with_loader(with_phases(data=0.6), num_iterators=3),
        {"kind": "decode", "name": "PIL.ImageFile.load", "share": 0.5, "repeats": True},
        {"kind": "transform", "name": "Resize", "share": 0.2, "random": False, "repeats": True},
        {"kind": "transform", "name": "RandomCrop", "share": 0.1, "random": True},
        {"kind": "transform", "name": "ToTensor", "share": 0.1, "random": False},
    ),
    "small-reads": with_parts_of_a_sample(
        with_loader(with_phases(data=0.6)),
        {"kind": "read", "name": "h5py.Dataset.__getitem__", "share": 0.8},
        read_bytes_per_sample=40_000.0,
        reads_per_sample=20.0,
    ),
    "memory-copied-per-worker": with_parts_of_a_sample(
        with_loader(with_phases(data=0.6), num_workers=2),
        {"kind": "own", "name": "Rows.__getitem__", "share": 1.0},
        process="worker",
        private_bytes_per_worker=1e9,
    ),
    "padded-batches": with_parts_of_a_sample(
        with_loader(FINE),
        {"kind": "collate", "name": "pad", "path": SCRIPT, "line": 17, "share": 1.0},
        padding=0.1,
        padding_beyond=0.6,
    ),
    "slow-sampler": with_stacks(
        with_phases(data=0.5),
        ((0, CHOOSING, SAMPLER), "train", "data", 40),
        ((0, FETCH), "train", "data", 10),
        ((0, 1), "train", "forward", 50),
    ),
    "loader-restarted-each-step": with_stacks(
        msgspec.structs.replace(with_phases(data=0.5), epoch_steps=1),
        ((2, CHOOSING), "train", "data", 40),
        ((2,), "train", "other", 5),
        ((2, FETCH), "train", "data", 5),
        ((0, 1), "train", "forward", 50),
    ),
    "slow-dataset-line": with_stacks(
        with_loader(with_phases(data=0.6), num_workers=2),
        ((3,), "worker", None, 90),
        ((0, 1), "train", "data", 60),
    ),
}
"""For each code that needs deep windows a program that has its pattern."""
