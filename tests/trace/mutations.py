"""Traces broken in every way that is seen in the field, and some that are not; the same ones for a seed."""

import gzip
import json
import random
from collections.abc import Callable
from typing import Any

Mutation = Callable[[random.Random, dict[str, Any]], bytes]

_ODD_VALUES: tuple[Any, ...] = (
    None, "", "x" * 300, -1, 0, 2**31, 2**63, 2**64, -(2**70), 10**400, 1.8446744073709552e16, -0.0, 1e308, True, [],
    {}, [1, [2]], {"a": {"b": []}}, "NaN", "stream 7", "12.5", "\u2028", "\ud83d\ude00",
)  # fmt: skip
_FIELDS = ("ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "id")


def _encode(trace: dict[str, Any]) -> bytes:
    return json.dumps(trace).encode()


def cut(rng: random.Random, trace: dict[str, Any]) -> bytes:
    data = _encode(trace)
    return data[: rng.randrange(len(data))]


def flip_bytes(rng: random.Random, trace: dict[str, Any]) -> bytes:
    data = bytearray(_encode(trace))
    for _ in range(rng.choice((1, 3, 30, 300))):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def drop_bytes(rng: random.Random, trace: dict[str, Any]) -> bytes:
    data = _encode(trace)
    start = rng.randrange(len(data))
    return data[:start] + data[start + rng.randrange(200) :]


def reorder(rng: random.Random, trace: dict[str, Any]) -> bytes:
    events = list(trace["traceEvents"])
    rng.shuffle(events)
    items = [*trace.items()]
    rng.shuffle(items)
    return _encode({**dict(items), "traceEvents": events})


def duplicate(rng: random.Random, trace: dict[str, Any]) -> bytes:
    events = trace["traceEvents"]
    return _encode({**trace, "traceEvents": [rng.choice(events) for _ in range(2 * len(events))]})


def wrong_types(rng: random.Random, trace: dict[str, Any]) -> bytes:
    events = [dict(event) for event in trace["traceEvents"]]
    for _ in range(rng.choice((1, 5, 50))):
        event = rng.choice(events)
        args = event.get("args")
        if isinstance(args, dict) and args and rng.random() < 0.5:
            event["args"] = {**args, rng.choice(list(args)): rng.choice(_ODD_VALUES)}
        else:
            event[rng.choice(_FIELDS)] = rng.choice(_ODD_VALUES)
    return _encode({**trace, "traceEvents": events})


def huge_times(rng: random.Random, trace: dict[str, Any]) -> bytes:
    events = [dict(event) for event in trace["traceEvents"]]
    for event in rng.sample(events, min(8, len(events))):
        event[rng.choice(("ts", "dur"))] = rng.choice(
            (10**15, 9.3e15, -9.3e15, 10**30, 1e300, 2**62, -(10**14))
        )
    return _encode({**trace, "traceEvents": events})


def deep_nesting(rng: random.Random, trace: dict[str, Any]) -> bytes:
    depth = rng.choice((50, 2000, 100_000))
    deep = b'{"ph":"X","args":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}"
    lists = b'{"ph":"X","args":{"Input Dims":' + b"[" * depth + b"]" * depth + b"}}"
    return _encode(trace).replace(
        b'"traceEvents": [', b'"traceEvents": [' + rng.choice((deep, lists)) + b",", 1
    )


def odd_metadata(rng: random.Random, trace: dict[str, Any]) -> bytes:
    name = rng.choice(
        ("deviceProperties", "distributedInfo", "baseTimeNanoseconds", "traceEvents", "with_stack")
    )
    return _encode({**trace, name: rng.choice((*_ODD_VALUES, [{}], [{"id": "x", "name": 5}], {"rank": {}}))})


def not_json(rng: random.Random, trace: dict[str, Any]) -> bytes:
    data = _encode(trace)
    old, new = rng.choice(
        ((b'"dur": ', b'"dur": NaN, "x": '), (b", ", b",,"), (b'"', b"'"), (b"}", b"}}"), (b"[", b"[["))
    )
    return data.replace(old, new, rng.choice((1, 5, -1)))


def interleaved(rng: random.Random, trace: dict[str, Any]) -> bytes:
    data = _encode(trace)
    return data * 2 if rng.random() < 0.5 else data[: len(data) // 2] + data


def broken_gzip(rng: random.Random, trace: dict[str, Any]) -> bytes:
    packed = bytearray(gzip.compress(_encode(trace)))
    for _ in range(rng.choice((0, 1, 4))):
        packed[rng.randrange(len(packed))] = rng.randrange(256)
    return bytes(packed[: rng.randrange(1, len(packed))])


MUTATIONS: tuple[Mutation, ...] = (
    cut, flip_bytes, drop_bytes, reorder, duplicate, wrong_types, huge_times, deep_nesting, odd_metadata, not_json,
    interleaved, broken_gzip,
)  # fmt: skip
