"""Pack 50,000 small files, killed ten times: `python -m benchmarks.data.killed_packs FOLDER`.

Writes the files and the packs into FOLDER, which is best on a disk and empty, and prints Markdown: what each format
kept from kill to kill, whether the end is complete, equal to a pack that nobody killed, and how fast it is read in
order beside the small files.
"""

from __future__ import annotations

import hashlib
import random
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from hotloop.machine.host.identity import identity
from hotloop.model.data import CheckReport

NUM_FILES = 50_000
NUM_KILLS = 10


def main(folder: Path) -> None:
    source = folder / "files"
    make(source)
    print(f"# Packs that were killed\n\n{identity().cpu_model}, {identity().num_cores} cores. ", end="")
    print(f"{NUM_FILES:,} files of 0.5 to 6 kB; each pack was killed {NUM_KILLS} times (SIGKILL).\n")
    print(
        "| format | shards kept after each kill | complete | equal to a pack not killed | samples/s, small files |"
        " samples/s, packed | faster |"
    )
    print("|---|---|---|---|---|---|---|")
    for format_name in ("tar", "hdf5", "lmdb", "arrow"):
        print(row(source, folder, format_name), flush=True)


def make(source: Path) -> None:
    """Write the files, a hundred folders of them."""
    rng = random.Random(0)
    for number in range(NUM_FILES):
        path = source / f"{number // 500:03d}" / f"{number:05d}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(rng.randbytes(rng.randrange(500, 6000)))


def row(source: Path, folder: Path, format_name: str) -> str:
    killed, whole = folder / f"killed-{format_name}", folder / f"whole-{format_name}"
    command = [
        sys.executable,
        "-m",
        "hotloop",
        "data",
        "pack",
        str(source),
        str(killed),
        "--format",
        format_name,
    ]
    command += ["--samples-per-shard", "1000", "--quiet"]
    rng, kept = random.Random(1), []
    for _ in range(NUM_KILLS):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        before = shards(killed)
        while process.poll() is None and shards(killed) < before + rng.randrange(1, 6):
            time.sleep(0.02)
        time.sleep(rng.random() * 0.1)
        process.kill()
        process.wait()
        kept.append(shards(killed))
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([*command[:6], str(whole), *command[7:]], check=True, stdout=subprocess.DEVNULL)
    report = checked(killed, folder / "check.json")
    same = digests(killed) == digests(whole)
    assert report.original_samples_per_s is not None
    assert report.packed_samples_per_s is not None
    assert report.speedup is not None
    speedup = report.speedup
    return (
        f"| {format_name} | {', '.join(map(str, kept))} of 50 "
        f"| {report.passed}, {report.num_compared:,} compared | {same} "
        f"| {report.original_samples_per_s.median:,.0f} | {report.packed_samples_per_s.median:,.0f} "
        f"| {speedup.median:.1f} [{speedup.low:.1f}, {speedup.high:.1f}] |"
    )


def shards(folder: Path) -> int:
    return len([path for path in folder.glob("shard-*") if not path.name.endswith(".partial")])


def digests(folder: Path) -> list[str]:
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob("shard-*"))]


def checked(folder: Path, result: Path) -> CheckReport:
    words = ["data", "check", str(folder), "--json", str(result), "--quiet"]
    subprocess.run([sys.executable, "-m", "hotloop", *words], check=False, stdout=subprocess.DEVNULL)
    return msgspec.json.decode(result.read_bytes(), type=CheckReport)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
