"""Run the acceptance.

    python -m benchmarks.acceptance [--device cuda|cpu] [--part N|NAME] [--list] [--write]

Prints hotloop's figures beside the truth, part by part, and ends with 1 where they part. `--write` puts the table under
`benchmarks/results`, after each part, so that an hour that ends early leaves what it saw.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import signal
import sys
import time
from pathlib import Path

import torch

from benchmarks.acceptance.parts import PARTS
from benchmarks.acceptance.place import place
from benchmarks.acceptance.row import Row, Skipped, table

RESULTS = Path(__file__).parents[1] / "results"
GPU_PARTS = {
    "1": ("blocks",),
    "2": ("arms-in-memory", "out-of-memory"),
    "3": ("operators", "overhead"),
    "4": ("null-duet",),
    "5": ("compiled-arm",),
    "6": ("tune-gpt",),
    "7": ("tune-resnet",),
    "8": ("tune-unet3d",),
    "9": ("machine", "phases", "clock"),
    "10": ("scaler", "freezes", "ranks"),
    "11": ("memory",),
}
"""Parts by number, those that no GPU has seen first."""
LIMIT_S = 330.0
"""Of one call on a GPU: with starting and installing it is under six minutes. What had no time is said."""


class TooLateError(Exception):
    """A part had not come to its end when the time was over."""


def main() -> int:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--device", choices=["cuda", "cpu"], default="cuda" if torch.cuda.is_available() else "cpu"
    )
    parser.add_argument("--part", default="all", help="a number, a name, or all")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    if args.list:
        print("\n".join(f"{number}: {', '.join(names)}" for number, names in GPU_PARTS.items()))
        return 0
    if args.device == "cuda" and not torch.cuda.is_available():
        print(f"torch {torch.__version__} sees no GPU (torch.cuda.is_available() is False)", file=sys.stderr)
        return 2
    names = tuple(PARTS) if args.part == "all" else GPU_PARTS.get(args.part, (args.part,))
    if args.device == "cuda" and args.part != "all":
        end_after(LIMIT_S)
    parted = False
    for name in names:
        began = time.monotonic()
        rows = run_part(name, args.device)
        parted = parted or any(isinstance(row, Row) and not row.holds for row in rows)
        lines = [f"## {name} ({time.monotonic() - began:.0f} s)", "", *table(rows), ""]
        print("\n".join(lines), flush=True)
        if args.write:
            write(args.device, name, lines)
    return int(parted)


def end_after(seconds: float) -> None:
    """End the part under way when the time is over, and those after it at once."""

    def over(*_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 1.0)  # the next one, too
        raise TooLateError(f"{seconds:.0f} s were over")

    signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def run_part(name: str, device: str) -> list[Row | Skipped]:
    """Return a part's rows; one that fails is a row that parts."""
    rows: list[Row | Skipped] = []
    with place(device) as here:
        try:
            rows.extend(PARTS[name](here))
        except Exception as error:  # the next part is worth having all the same
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
            reason = f"{type(error).__name__}: {error}".replace("\n", " ")[:200]
            rows.append(Row(what=f"{name} runs to its end", ours=0.0, truth=1.0, within=0.0, how=reason))
    return rows


def write(device: str, name: str, lines: list[str]) -> None:
    """Put a part's table into the page of the day, in place of an earlier one of the same part."""
    day = datetime.datetime.now(tz=datetime.timezone.utc).date()
    page = RESULTS / f"acceptance-{device}-{day}.md"
    known = _parts(page.read_text()) if page.exists() else {}
    known[name] = "\n".join(lines)
    order = [one for one in PARTS if one in known]
    page.write_text("\n".join([*_head(device, day), *(known[one] for one in order)]).rstrip() + "\n")


def _head(device: str, day: datetime.date) -> list[str]:
    machine = torch.cuda.get_device_name() if device == "cuda" else _cpu()
    return [
        f"# Acceptance on {'a GPU' if device == 'cuda' else 'a CPU'}",
        "",
        f"{machine}, torch {torch.__version__}, Python {platform.python_version()}, {day}.",
        "`python -m benchmarks.acceptance --write`: hotloop's figure beside the truth taken another way.",
        "",
    ]


def _cpu() -> str:
    from hotloop.machine.host.identity import identity

    here = identity()
    return f"{here.cpu_model}, {here.num_cores} cores, {here.memory_bytes / 2**30:.0f} GiB"


def _parts(text: str) -> dict[str, str]:
    found = {}
    for part in text.split("\n## ")[1:]:
        found[part.split(" ", 1)[0]] = "## " + part.rstrip() + "\n"
    return found


if __name__ == "__main__":
    sys.exit(main())
