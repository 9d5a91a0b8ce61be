"""Make a large trace out of a real one: its events again and again, each copy later and with ids of its own."""

import argparse
import gzip
from pathlib import Path
from typing import Any

import msgspec

_IDS = (
    "correlation",
    "External id",
    "external id",
    "Ev Idx",
    "Python id",
    "Python parent id",
    "Sequence number",
)


def replicate(source: Path, target: Path, size_bytes: int) -> int:
    """Write copies of the events of `source` until the file is `size_bytes` large.

    Returns:
        The number of copies.
    """
    data = gzip.decompress(source.read_bytes()) if source.suffix == ".gz" else source.read_bytes()
    trace = msgspec.json.decode(data)
    del data
    events: list[dict[str, Any]] = trace.pop("traceEvents")
    timed = [
        event for event in events if isinstance(event.get("ts"), (int, float)) and event.get("ph") != "M"
    ]
    period = max(e["ts"] + e.get("dur", 0) for e in timed) - min(e["ts"] for e in timed) + 1000
    stride = 1 + max((_largest_id(event) for event in events), default=0)
    head = msgspec.json.format(msgspec.json.encode(trace), indent=2).rstrip()[:-1].rstrip()
    copies = 0
    with target.open("wb") as file:
        file.write(head + b',\n  "traceEvents": [\n')
        while file.tell() < size_bytes:
            for index, event in enumerate(events):
                if copies and event.get("ph") == "M":
                    continue
                shifted = _shifted(event, copies * period, copies * stride)
                text = msgspec.json.format(msgspec.json.encode(shifted), indent=2).replace(b"\n", b"\n    ")
                file.write((b",\n    " if index or copies else b"    ") + text)
            copies += 1
        file.write(b"\n  ]\n}\n")
    return copies


def _largest_id(event: dict[str, Any]) -> int:
    args = event.get("args") or {}
    ids = [args[name] for name in _IDS if isinstance(args.get(name), int)]
    ids += [event["id"]] if isinstance(event.get("id"), int) else []
    return max(ids, default=0)


def _shifted(event: dict[str, Any], later: float, higher: int) -> dict[str, Any]:
    shifted = dict(event)
    if isinstance(event.get("ts"), (int, float)):
        shifted["ts"] = round(event["ts"] + later, 3)
    if isinstance(event.get("id"), int):
        shifted["id"] = event["id"] + higher
    args = event.get("args")
    if args:
        shifted["args"] = {
            name: value + higher if name in _IDS and isinstance(value, int) and value > 0 else value
            for name, value in args.items()
        }
    return shifted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--mb", type=int, default=500)
    options = parser.parse_args()
    print(replicate(options.source, options.target, options.mb * 1_000_000), "copies")


if __name__ == "__main__":
    main()
