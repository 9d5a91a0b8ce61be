"""What stands around the events of a trace: device, rank, profiler settings."""

import re
from typing import Any

import msgspec

from hotloop.trace.read.salvage import BROKEN
from hotloop.trace.read.trace import DeviceProperties, Metadata

_RANK_IN_NAME = re.compile(r"(?:rank|worker)[-_.]?(\d{1,6})(?!\d)", re.IGNORECASE)


class _Distributed(msgspec.Struct, frozen=True):
    rank: Any = None
    world_size: Any = None
    backend: Any = None


def read_metadata(raw: dict[str, msgspec.Raw], label: str) -> Metadata:
    """The named facts; what is missing or has an odd type is None."""
    distributed = _decode(raw, "distributedInfo", _Distributed) or _Distributed()
    rank = _whole(distributed.rank)
    return Metadata(
        rank=rank if rank is not None else _rank_in_name(label),
        world_size=_whole(distributed.world_size),
        backend=distributed.backend if isinstance(distributed.backend, str) else None,
        base_ns=_whole(_decode(raw, "baseTimeNanoseconds", Any)),
        devices=_decode(raw, "deviceProperties", tuple[DeviceProperties, ...]) or (),
        with_stack=_flag(raw, "with_stack"),
        record_shapes=_flag(raw, "record_shapes"),
        profile_memory=_flag(raw, "profile_memory"),
        cuda_version=_whole(_decode(raw, "cuda_runtime_version", Any)),
        hip_version=_whole(_decode(raw, "hip_runtime_version", Any)),
    )


def _rank_in_name(label: str) -> int | None:
    found = _RANK_IN_NAME.search(label.rsplit("#", 1)[-1])
    return int(found.group(1)) if found else None


def _decode(raw: dict[str, msgspec.Raw], key: str, shape: Any) -> Any:
    try:
        return msgspec.json.decode(raw[key], type=shape) if key in raw else None
    except BROKEN:
        return None


def _whole(value: Any) -> int | None:
    if isinstance(value, str) and value.isdigit() and len(value) < 19:
        return int(value)
    return value if type(value) is int else None


def _flag(raw: dict[str, msgspec.Raw], key: str) -> bool | None:
    value = _decode(raw, key, Any)
    return None if value is None else bool(value)
