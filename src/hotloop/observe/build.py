"""Put an Observation together from what a run left in its scratch folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hotloop.model.observation import Anchor, Coverage, Memory, Observation, Phase, RankObservation, StepTime
from hotloop.model.program import ProgramFacts
from hotloop.model.secrets import redacted_words
from hotloop.model.sites import SiteKind, Sites
from hotloop.model.step_series import StepSeries
from hotloop.observe.decode.processes import (
    device_memory,
    pinned_bytes,
    program_facts,
    program_sites,
    read_processes,
)
from hotloop.observe.decode.spans import DEVICE, Timeline
from hotloop.observe.decode.spans import timelines as timelines_of
from hotloop.observe.run_account.account import account, split_like
from hotloop.observe.steps.epochs import epoch_steps
from hotloop.observe.steps.job import observe_ranks
from hotloop.observe.steps.ranks import MIN_STEPS, steady_windows
from hotloop.observe.steps.rates import loader_slots
from hotloop.observe.steps.requests import inference
from hotloop.observe.steps.rhythm import find_anchor
from hotloop.observe.steps.series import step_series
from hotloop.observe.steps.step_windows import boundaries


def leading(timelines: dict[int, Timeline]) -> Timeline | None:
    """Return the process that trained most; its rhythm is the program's."""
    most = max((timeline.num_loop_spans for timeline in timelines.values()), default=0)
    # Ranks do the same work: of those that did nearly as much the oldest, rank 0, speaks for all.
    near = [timeline for timeline in timelines.values() if timeline.num_loop_spans >= 0.9 * most]
    return min(near, key=lambda timeline: timeline.pid, default=None)


def on_the_device(folder: Path, timelines: dict[int, Timeline], anchor: Anchor | None) -> dict[int, Timeline]:
    """Return the records on the device's clock, of the processes that have whole steps on it."""
    if anchor is None:
        return {}
    known = timelines_of(folder, {}, DEVICE)
    enough = {
        pid: timeline for pid, timeline in known.items() if len(steady_windows(timeline, anchor)) >= MIN_STEPS
    }
    return {pid: timeline for pid, timeline in enough.items() if pid in timelines}


def build(
    command: Sequence[str],
    folder: Path,
    timelines: dict[int, Timeline],
    *,
    script: Path | None,
    machine: dict[str, Any],
    begin_s: float,
    end_s: float,
    exit_code: int | None,
    uses_network: bool | None = None,
    foreign_share: float | None = None,
    steal_share: float | None = None,
) -> Observation:
    """Return the Observation of a run that has ended.

    Args:
        command: what the user typed.
        folder: the probe's folder.
        timelines: the records, brought up to date.
        script: the user's script, for the program's identity.
        machine: the machine's identity.
        begin_s: when the command was started, on the monotonic clock.
        end_s: when it ended.
        exit_code: the program's; None: it was ended by us.
        uses_network: whether a connection beyond this machine was seen.
        foreign_share: share of the machine's processor time that others took.
        steal_share: share of it in which the hypervisor ran another machine.
    """
    processes = read_processes(folder)
    lead = leading(timelines)
    anchor = find_anchor(lead.spans) if lead else None
    on_device = on_the_device(folder, timelines, anchor)
    ranks = list(observe_ranks(timelines, on_device, anchor, processes))
    trained = sorted(
        (rank for rank in ranks if rank.step), key=lambda rank: (rank.rank is None, rank.rank or 0)
    )
    main = next((rank for rank in trained if lead and rank.pid == lead.pid), None)
    program = _marked(program_facts(processes.get(lead.pid) if lead else None, script), lead, anchor)
    sites = program_sites(processes.get(lead.pid) if lead else None, Path.cwd())
    timed = on_device.get(lead.pid, lead) if lead else None
    on_clock = on_device.get(lead.pid) if lead else None
    run = account(
        lead,
        anchor,
        begin_s,
        end_s,
        on_clock,
        simulates=bool(program.simulators),
        ended_early=exit_code is None,
    )
    return Observation(
        command=redacted_words(command),
        step=_of_all(main.step, trained) if main and main.step else None,
        phases=main.phases if main else {},
        other=main.other if main else {},
        evaluated=main.evaluated if main else None,
        ranks=tuple(trained),
        memory=_memory(trained, program, processes),
        run=split_like(run, main.phases) if main and len(trained) > 1 else run,
        inference=inference(timed, anchor, steady_windows(timed, anchor)) if timed and anchor else None,
        clock="device" if lead and lead.pid in on_device else "host",
        coverage=tuple(_coverage(main, program, anchor, processes.get(lead.pid) if lead else None)),
        program=program,
        anchor=anchor,
        machine=machine,
        exit_code=exit_code,
        epoch_steps=epoch_steps(lead, anchor) if lead and anchor else None,
        total_steps=len(boundaries(lead, anchor)) if lead and anchor and exit_code is not None else None,
        uses_network=uses_network,
        foreign_share=foreign_share,
        steal_share=steal_share,
        series=tuple(_series(trained, timelines, on_device, anchor, begin_s)) if anchor else (),
        sites=_feeding(sites, program),
    )


def _series(
    trained: Sequence[RankObservation],
    timelines: dict[int, Timeline],
    on_device: dict[int, Timeline],
    anchor: Anchor,
    begin_s: float,
) -> Iterator[StepSeries]:
    for rank in trained:
        timeline = on_device.get(rank.pid, timelines[rank.pid])
        yield step_series(timeline, anchor, steady_windows(timeline, anchor), rank.rank, begin_s)


def _of_all(step: StepTime, trained: Sequence[RankObservation]) -> StepTime:
    """Return one process's step with the samples and tokens of all: they train at the same time."""
    steps = [rank.step for rank in trained if rank.step]
    samples = [each.samples_per_s for each in steps if each.samples_per_s is not None]
    tokens = [each.tokens_per_s for each in steps if each.tokens_per_s is not None]
    return msgspec.structs.replace(
        step, samples_per_s=sum(samples) if samples else None, tokens_per_s=sum(tokens) if tokens else None
    )


def _memory(
    ranks: Sequence[RankObservation], program: ProgramFacts, processes: Mapping[int, dict[str, Any]]
) -> Memory:
    peaks = [rank.peak_bytes for rank in ranks if rank.peak_bytes is not None]
    method = (
        "largest resident set of a training process"
        if program.device == "cpu"
        else "torch's caching allocator"
    )
    on_host = [processes[rank.pid].get("host_peak_bytes") for rank in ranks if rank.pid in processes]
    imported = [processes[rank.pid].get("import_bytes") for rank in ranks if rank.pid in processes]
    return Memory(
        import_bytes=max((size for size in imported if size is not None), default=None),
        peak_bytes=max(peaks, default=None),
        device=program.device,
        method=method,
        host_peak_bytes=max((peak for peak in on_host if peak is not None), default=None),
        pinned_bytes=pinned_bytes(processes),
        devices=device_memory(processes),
    )


def _marked(program: ProgramFacts, lead: Timeline | None, anchor: Anchor | None) -> ProgramFacts:
    """Mark the loaders that feed the step."""
    if lead is None or anchor is None:
        return program
    feeding = loader_slots(lead, steady_windows(lead, anchor))
    loaders = tuple(
        msgspec.structs.replace(loader, used_in_step=slot in feeding)
        for slot, loader in enumerate(program.loaders)
    )
    return msgspec.structs.replace(program, loaders=loaders)


def _feeding(sites: Sites, program: ProgramFacts) -> Sites:
    """Mark the constructions of loaders that feed no step, where some do."""
    if not any(loader.used_in_step for loader in program.loaders):
        return sites
    idle = {slot for slot, loader in enumerate(program.loaders) if not loader.used_in_step}
    marked = (
        msgspec.structs.replace(site, in_step=False)
        if site.kind is SiteKind.LOADER and site.slot in idle
        else site
        for site in sites.sites
    )
    return msgspec.structs.replace(sites, sites=tuple(marked))


def _coverage(
    main: RankObservation | None, program: ProgramFacts, anchor: Anchor | None, facts: dict[str, Any] | None
) -> list[Coverage]:
    missing: list[Coverage] = []
    if main is None or main.step is None:
        return missing
    names = " ".join(main.step.rhythm)
    if "data" not in names:
        missing.append(
            Coverage("data", "the program has no DataLoader in its step; making a batch counts as other")
        )
    if "forward" not in names and "evaluate" not in names:
        missing.append(
            Coverage("forward", "no module was called as a whole; the model's time counts as other")
        )
    if anchor and anchor.kind == "backward":
        missing.append(
            Coverage("optimizer", "the program has no optimizer object; its updates count as other")
        )
    if program.distributed in {"ddp", "fsdp"} and Phase.COMMUNICATION not in main.phases:
        missing.append(
            Coverage("communication", "gradient collectives run inside the backward and count there")
        )
    if main.step.samples_per_s is None:
        missing.append(
            Coverage(
                "samples_per_s", "no loader feeds the steps, and the model was given no batches to learn from"
            )
        )
    if facts and facts.get("other_trainers"):
        missing.append(Coverage("threads", "other threads of the process train too; one of them is shown"))
    unread = facts.get("unread", {}) if facts else {}
    missing.extend(Coverage(name, f"torch refused to tell it: {why}") for name, why in unread.items())
    missing.extend(Coverage("probe", note) for note in program.notes)
    return missing
