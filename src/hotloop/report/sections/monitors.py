"""The machine during the steady steps, in a few rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hotloop.model.monitors import Monitor, Monitors
from hotloop.model.quantities import byte_size, counted, duration, percent, significant
from hotloop.report.document import Block, Facts, Note

_LEAST_RATE = 1 << 10
"""Bytes a second: less than 1 KiB/s is background activity of the machine."""


def monitors(seen: Monitors) -> Iterator[Block]:
    """Yield the means over the steady steps, with the largest sample where it says more."""
    window = duration(seen.end_s - seen.begin_s)
    yield Note(f"The machine meanwhile, mean (and largest sample) over {window}", "strong")
    yield Facts(tuple(_rows(seen)))


def _rows(seen: Monitors) -> Iterator[tuple[str, str]]:
    rows = {"cores": _cores(seen), "memory": _memory(seen), "disk": _disk(seen), "network": _network(seen)}
    yield from ((name, ", ".join(said)) for name, said in rows.items() if said)
    for label in seen.labelled("gpu_utilization_ratio"):
        yield label.replace('"', "").replace("=", " "), ", ".join(_gpu(seen, label))
    foreign = seen.metrics.get("cpu_foreign_ratio")
    if foreign is not None:
        yield "others", f"{_share(foreign)} of the CPU used by other processes"


def _cores(seen: Monitors) -> list[str]:
    each = [core.mean for core in seen.labelled("cpu_utilization_ratio").values()]
    if not each:
        return []
    busy = seen.mean("cpu_busy_ratio") or sum(each) / len(each)
    said = [f"{percent(busy)} of {len(each)} busy, each {percent(min(each))} to {percent(max(each))}"]
    for name, word in (("cpu_iowait_ratio", "waiting for disk"), ("cpu_steal_ratio", "stolen")):
        share = seen.metrics.get(name)
        if share is not None and share.mean >= 0.001:
            said.append(f"{_share(share)} {word}")
    heat = seen.metrics.get("cpu_temperature_c")
    return said if heat is None else [*said, f"{heat.max:.0f} °C at most"]


def _memory(seen: Monitors) -> list[str]:
    used, free = seen.metrics.get("memory_used_bytes"), seen.metrics.get("memory_available_bytes")
    said = []
    if used is not None:
        said.append(f"{byte_size(used.mean)} used ({byte_size(used.max)})")
    if free is not None:
        said.append(f"{byte_size(free.mean)} free")
    for name, word in (
        ("swap_in_bytes_per_s", "read back from swap"),
        ("swap_out_bytes_per_s", "swapped out"),
    ):
        said += _rate(seen, name, word)
    return said


def _disk(seen: Monitors) -> list[str]:
    return _rate(seen, "disk_read_bytes_per_s", "read") + _rate(seen, "disk_write_bytes_per_s", "written")


def _network(seen: Monitors) -> list[str]:
    return _rate(seen, "network_received_bytes_per_s", "received") + _rate(
        seen, "network_sent_bytes_per_s", "sent"
    )


def _gpu(seen: Monitors, label: str) -> Iterator[str]:
    busy = seen.metrics[f"gpu_utilization_ratio{{{label}}}"]
    yield f"{_share(busy)} busy"
    said: tuple[tuple[str, Callable[[Monitor], str]], ...] = (
        ("memory_used_bytes", lambda one: byte_size(one.max)),
        ("power_w", lambda one: f"{one.mean:.0f} W"),
        ("temperature_c", lambda one: f"{one.max:.0f} °C at most"),
        ("clock_hz", lambda one: f"{significant(one.mean / 1e9)} GHz"),
        ("throttled_ratio", lambda one: f"throttled {percent(one.mean)}" if one.mean else ""),
        ("foreign_num_processes", _others),
    )
    for name, words in said:
        one = seen.metrics.get(f"gpu_{name}{{{label}}}")
        text = "" if one is None else words(one)
        if text:
            yield text


def _others(one: Monitor) -> str:
    return counted(round(one.max), "other process", "other processes") if one.max else ""


def _rate(seen: Monitors, name: str, word: str) -> list[str]:
    rate = seen.metrics.get(name)
    if rate is None or rate.max < _LEAST_RATE:
        return []
    return [f"{byte_size(rate.mean)}/s {word} ({byte_size(rate.max)}/s)"]


def _share(one: Monitor) -> str:
    return f"{percent(one.mean)} ({percent(one.max)})"
