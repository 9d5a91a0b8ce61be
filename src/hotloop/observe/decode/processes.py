"""Read what the probe wrote about each process, beside its events."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hotloop.model.observation import DeviceMemory
from hotloop.model.program import LoaderFacts, ModuleFacts, OptimizerFacts, ProgramFacts
from hotloop.model.sites import Place, Site, SiteKind, Sites


def read_processes(folder: Path) -> dict[int, dict[str, Any]]:
    """Return the facts of each process by pid."""
    found = {}
    for path in sorted(folder.glob("process-*.json")):
        raw = json.loads(path.read_text())
        found[raw["pid"]] = raw
    return found


def failure_of(folder: Path, pid: int, where: str) -> str | None:
    """Return what went wrong at one place of the probe in a process; None: nothing is known to have."""
    facts = read_processes(folder).get(pid, {})
    noted = next((note["error"] for note in facts.get("notes", ()) if note["where"] == where), None)
    return noted.strip().splitlines()[-1] if noted else None


def _loader(raw: dict[str, Any], num_steps: int) -> LoaderFacts:
    known = msgspec.convert(raw, LoaderFacts)
    if not num_steps:
        return known
    return msgspec.structs.replace(known, batches_per_step=raw["num_batches"] / num_steps)


def program_facts(raw: dict[str, Any] | None, script: Path | None) -> ProgramFacts:
    """Return the program's facts as one process saw them; all unknown where none reported."""
    if raw is None:
        return ProgramFacts(script=str(script) if script else None, script_sha256=_digest(script))
    roots = msgspec.convert(raw["roots"], tuple[ModuleFacts, ...])
    optimizers = msgspec.convert(raw["optimizers"], tuple[OptimizerFacts, ...])
    loaders = tuple(_loader(each, raw["steps"]) for each in raw["loaders"])
    return ProgramFacts(
        torch_version=raw["torch_version"],
        hip_version=raw.get("hip_version"),
        capability=next(
            (tuple(row["capability"]) for row in raw.get("device_memory", ()) if row.get("capability")), None
        ),
        libraries=tuple(raw.get("libraries", ())),
        python_version=raw["python_version"],
        device=_device(roots),
        roots=roots,
        loaders=loaders,
        optimizers=optimizers,
        num_threads=raw["num_threads"],
        num_interop_threads=raw["num_interop_threads"],
        anomaly_mode=raw["anomaly_mode"],
        profiled=raw["profiled"],
        reduced=raw.get("reduced"),
        deterministic=raw["deterministic"],
        autocast_dtype=raw["autocast_dtype"],
        matmul_precision=raw["matmul_precision"] or "highest",
        convolution_precision=raw.get("convolution_precision") or "float32",
        cudnn_benchmark=bool(raw["cudnn_benchmark"]),
        frameworks=tuple(raw["frameworks"]),
        simulators=tuple(raw.get("simulators", ())),
        world_size=raw["world_size"],
        double_backward=raw["double_backward"],
        seeds=tuple(raw["seeds"]),
        shared_memory=raw["shared_memory"],
        distributed=raw["distributed"],
        environment=raw["environment"],
        script=str(script) if script else None,
        script_sha256=_digest(script),
        skipped_steps=raw.get("skipped_steps", 0),
        notes=tuple(f"{note['where']}: {note['error'].strip().splitlines()[-1]}" for note in raw["notes"]),
    )


def device_memory(processes: Mapping[int, dict[str, Any]]) -> tuple[DeviceMemory, ...]:
    """Return what all processes that trained take of each device: ranks may share one."""
    held: dict[tuple[str | None, int], list[dict[str, Any]]] = {}
    for facts in processes.values():
        for device in facts.get("device_memory", ()) if facts["steps"] else ():
            held.setdefault((device["uuid"], device["index"]), []).append(device)
    return tuple(_shared(rows) for _, rows in sorted(held.items(), key=lambda item: item[0][1]))


def _shared(rows: list[dict[str, Any]]) -> DeviceMemory:
    first = rows[0]
    used = first["total_bytes"] - min(row["free_bytes"] for row in rows)
    return DeviceMemory(
        index=first["index"],
        uuid=first["uuid"],
        name=first["name"],
        total_bytes=first["total_bytes"],
        reserved_bytes=sum(row["peak_reserved_bytes"] for row in rows),
        beside_bytes=max(0, used - sum(row["reserved_bytes"] for row in rows)),
        allocated_bytes=sum(row["peak_bytes"] for row in rows),
        inactive_split_bytes=_sum_of_known(row.get("inactive_split_bytes") for row in rows),
        num_retries=sum(row["num_alloc_retries"] for row in rows),
    )


def pinned_bytes(processes: Mapping[int, dict[str, Any]]) -> int | None:
    """Return what all processes that trained pinned on the host; None: not told."""
    return _sum_of_known(facts.get("pinned_bytes") for facts in processes.values() if facts["steps"])


def _sum_of_known(sizes: Iterable[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return sum(known) if known else None


def _device(roots: Sequence[ModuleFacts]) -> str:
    """Return where the models' parameters are; one on a device speaks for all."""
    devices = [device for root in roots for device in root.devices]
    return max(devices, key=lambda name: name != "cpu", default="cpu")


def program_sites(raw: dict[str, Any] | None, folder: Path) -> Sites:
    """Return where one process's program made its calls; files below `folder` are named from there."""
    found = msgspec.convert((raw or {}).get("sites", []), tuple[Site, ...])
    rows = {slot for slot, loader in enumerate((raw or {}).get("loaders", [])) if loader.get("rows")}
    sites = tuple(
        msgspec.structs.replace(
            site,
            places=tuple(_relative(place, folder) for place in site.places),
            rows=site.kind is SiteKind.LOADER and site.slot in rows,
        )
        for site in found
    )
    paths = sorted({place.path for site in sites for place in site.places})
    digests = {path: _digest(folder / path) for path in paths}
    device = _device(msgspec.convert((raw or {}).get("roots", []), tuple[ModuleFacts, ...]))
    return Sites(
        sites=sites, device=device, sources={path: digest for path, digest in digests.items() if digest}
    )


def _relative(place: Place, folder: Path) -> Place:
    path = Path(place.path)
    inside = path.is_relative_to(folder)
    return msgspec.structs.replace(place, path=str(path.relative_to(folder)) if inside else place.path)


def _digest(script: Path | None) -> str | None:
    if script is None or not script.is_file():
        return None
    return hashlib.sha256(script.read_bytes()).hexdigest()
