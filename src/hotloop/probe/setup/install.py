"""Put the probe into this process; called from `sitecustomize`, before any of the user's code."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from hotloop.probe.process.config import ProbeConfig, load
from hotloop.probe.record.events import Kind, end
from hotloop.probe.setup.import_hook import when_imported, when_torch_is_imported

if TYPE_CHECKING:
    from hotloop.probe.probe import Probe
    from hotloop.probe.setup.edited_sources import EditedSources
    from hotloop.probe.setup.merged_view import MergedView


def start() -> None:
    """Wait for torch in this process, if the launcher wants it watched."""
    config = load()
    if config is None:
        return
    if config.folder:
        _witness(Path(config.folder), "python")
    guarded = None
    if config.guard and config.guard_scratch:
        from hotloop.probe.setup import write_guard as guard

        guarded = guard.install(config.guard, config.guard_scratch, config.guard_free)
    if config.virtual_gpu is not None and config.folder:
        _virtual_gpu(config.virtual_gpu, Path(config.folder))
        return
    edited = _edit_sources(config)
    python_ns = monotonic_ns()
    when_torch_is_imported(lambda: install(config, guarded, python_ns, edited))


def _virtual_gpu(order: dict[str, Any], folder: Path) -> None:
    from hotloop.probe.virtual_gpu import install as virtual_gpu

    if virtual_gpu.load(order, folder):
        when_torch_is_imported(lambda: virtual_gpu.install(order, folder, when_imported))


def _edit_sources(config: ProbeConfig) -> EditedSources | None:
    """Stand where Python reads the user's files, if an optimization wants to."""
    if not any(order.get("edits_source") for order in config.activations):
        return None
    from hotloop.probe.setup.edited_sources import EditedSources

    edited = EditedSources(config.activations)
    edited.install()
    return edited


def _witness(folder: Path, what: str) -> None:
    """Leave a mark that tells `not Python` from `Python without torch` from `torch that never trained`."""
    try:
        (folder / f"{what}-{os.getpid()}").write_text(" ".join(sys.orig_argv))
    except OSError:
        return


def install(
    config: ProbeConfig,
    guarded: MergedView | None = None,
    python_ns: int | None = None,
    edited: EditedSources | None = None,
) -> None:
    """Install all hook points. Whatever fails here must not reach the program: that is the broad catch's reason."""
    try:
        if guarded is not None:
            from hotloop.probe.setup.write_guard import install_torch

            install_torch(guarded)
        from hotloop.probe.probe import Probe

        if config.folder:
            _witness(Path(config.folder), "torch")
        probe = Probe(config)
        probe.recorder.python_ns = python_ns
        with probe.survive("install"):
            _install_points(probe, edited)
    except Exception as error:  # the probe fails open
        sys.stderr.write(
            f"hotloop: the probe could not be installed, the program goes on without it: {error!r}\n"
        )


def _install_points(probe: Probe, edited: EditedSources | None = None) -> None:
    from hotloop.probe.hook_points import (
        backward,
        communication,
        forward,
        loader,
        optimizer,
        source_sites,
        transfer,
    )
    from hotloop.probe.run_events import checkpoints, garbage_collection, imports, libraries, logs, trainers

    probe.load_activations(edited.activations if edited is not None else {})
    if edited is not None:
        probe.facts.notes += edited.notes
    probe.recorder.raw(end(Kind.TORCH))
    probe.watch_process()
    _watch_device(probe)
    for activation in probe.acting("on_torch"):
        try:
            activation.on_torch()
        except Exception:  # an optimization that fails is dropped, the program goes on
            probe.drop(activation, "on_torch")
    _seed(probe)
    for point in (
        loader,
        transfer,
        backward,
        communication,
        optimizer,
        source_sites,
        checkpoints,
        logs,
        garbage_collection,
    ):
        with probe.survive(point.__name__):
            point.install(probe)
    if (probe.folder is not None and probe.config.record) or probe.config.memory_reporter:
        _await_memory_failure(probe)
    waiting = imports.both(libraries.waiting(probe), trainers.waiting(probe))
    with probe.survive(forward.__name__):
        waiting |= forward.waiting(probe, forward.install(probe))
    with probe.survive(imports.__name__):
        imports.install(probe, waiting)
    if probe.config.followers:
        from hotloop.probe.live import followers

        followers.install(probe)
    if probe.config.instruments:
        with probe.survive("deep"):
            from hotloop.probe.windows import profiling_windows as deep

            deep.install(probe)
    if probe.config.whatif is not None:
        with probe.survive("whatif"):
            from hotloop.probe.windows.knob_blocks import Shape, WhatIf

            WhatIf(probe, Shape(**probe.config.whatif))


def _await_memory_failure(probe: Probe) -> None:
    with probe.survive("memory failure"):
        from hotloop.probe.memory_failure import witness

        witness.install(probe)
        if probe.config.follow_memory:
            from hotloop.probe.memory_failure import tracking

            tracking.install(probe)


def _seed(probe: Probe) -> None:
    from hotloop.probe.record.perturbation import seed_all
    from hotloop.probe.setup import program_seeds
    from hotloop.probe.setup.seeds import install_perturbation

    if probe.config.seed is not None:
        with probe.survive("seed"):
            seed_all(probe.config.seed)
    if probe.config.record:
        with probe.survive("program seeds"):
            program_seeds.install(probe)
    if probe.perturbation is not None:
        with probe.survive("perturb"):
            install_perturbation(probe, probe.perturbation)


def _watch_device(probe: Probe) -> None:
    """Once the program uses a device, wait for it and read its clock: asking for one would start its driver."""
    import torch

    if torch.version.cuda is None and torch.version.hip is None:
        return
    from hotloop.probe.device.device import Cuda, root_device

    device = Cuda(torch.cuda, lambda: root_device(probe.facts.roots))
    probe.boundary.clock.synchronize = device.synchronize
    probe.facts.device = device
    if probe.config.device_clock and probe.config.record and probe.folder is not None:
        from hotloop.probe.device.clock import start_when_used

        start_when_used(probe, device, device.in_use)
