"""`hotloop data`: data sets packed into shards, packs checked, storage timed."""

from __future__ import annotations

from pathlib import Path

import click

from hotloop.cli.files import write_json
from hotloop.cli.options import NewScreen, Number, ResultFile, output_options
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.report.sections.data import checked, packed, storage
from hotloop.report.terminal.layout import next_steps
from hotloop.report.terminal.screen import Screen
from hotloop.report.terminal.walk import render_blocks

FORMATS = ("tar", "hdf5", "lmdb", "arrow")
_json = click.option("--json", "json_file", type=ResultFile(), help="Write the report.")


@click.group("data", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Pack a data set into shards, check a pack, and time the storage.

    SRC is a folder of files, a folder of class folders with images, or a Dataset object as module:attr.

    \b
        hotloop data bench SRC
        hotloop data pack SRC DEST
        hotloop data check DEST
    """


@command.command("pack", epilog="Example: hotloop data pack images/ shards/")
@click.argument("src")
@click.argument("dest", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--format", "format_", type=click.Choice(FORMATS), default="tar", help="WebDataset tar by default."
)
@click.option("--samples-per-shard", type=click.IntRange(min=1), help="About 256 MiB a shard by default.")
@_json
@output_options
def pack_command(
    *,
    src: str,
    dest: Path,
    format_: str,
    samples_per_shard: int | None,
    json_file: Path | None,
    new_screen: NewScreen,
) -> int:
    """Write SRC into shards in the folder DEST; the same samples always give the same bytes.

    However a call ends, finished shards are kept, and the same call goes on behind them. Files that differ only in
    their extension are one sample; a folder of class folders with images gets its class numbers.
    """
    from hotloop.data.pack import pack

    screen = new_screen()
    try:
        report = pack(src, dest, format_, samples_per_shard, _Told(screen))
    finally:
        screen.done()
    if json_file is not None:
        write_json(json_file, report)
    screen.show(render_blocks(list(packed(report))))
    screen.show(next_steps([("compare with the original", ["hotloop", "data", "check", report.folder])]))
    return ExitCode.DONE


class _Told:
    """Shows how far a pack has come."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def __call__(self, done: int, total: int) -> None:
        if done % 100 == 0 or done == total:
            self._screen.progress(f"packing: {done:,} of {total:,} samples")


@command.command("check", epilog="Example: hotloop data check shards/")
@click.argument("places", nargs=-1, required=True, metavar="[SRC] DEST")
@_json
@output_options
def check_command(places: tuple[str, ...], json_file: Path | None, new_screen: NewScreen) -> int:
    """Read the pack in DEST again: every checksum, and every sample beside the original, both timed.

    The original is what was packed, or SRC where it has moved. Ends with 1 where something is missing, damaged or
    different.
    """
    from hotloop.data.check import check

    *source, dest = places
    if len(source) > 1:
        raise HotloopError(f"{len(places)} places are given", "name a pack, or the original and its pack")
    screen = new_screen()
    try:
        report = check(Path(dest), screen.progress, source_name=source[0] if source else None)
    finally:
        screen.done()
    if json_file is not None:
        write_json(json_file, report)
    screen.show(render_blocks(list(checked(report))))
    again = ("pack what is missing or damaged anew", ["hotloop", "data", "pack", "SRC", report.folder])
    timed = ("time its storage", ["hotloop", "data", "bench", report.folder])
    screen.show(next_steps([timed if report.passed else again]))
    return ExitCode.DONE if report.passed else ExitCode.GATE


@command.command("bench", epilog="Example: hotloop data bench images/")
@click.argument("src", type=click.Path(path_type=Path))
@click.option(
    "--seconds",
    type=Number(min=0.1),
    default=1.5,
    show_default=True,
    metavar="S",
    help="Seconds per access pattern.",
)
@_json
@output_options
def bench_command(src: Path, seconds: float, json_file: Path | None, new_screen: NewScreen) -> int:
    """Read the files of SRC as a loader does: cold and warm, in order and at random, by one process and more."""
    from hotloop.data.bench import bench

    if not src.exists():
        raise HotloopError(f"there is no file or folder {str(src)!r}", "name a folder of files, or a file")
    screen = new_screen()
    try:
        report = bench(src, screen.progress, seconds)
    finally:
        screen.done()
    if json_file is not None:
        write_json(json_file, report)
    screen.show(render_blocks(list(storage(report))))
    if report.median_file_bytes < report.block_bytes:  # longer files are read in parts, as shards are
        pack = ["hotloop", "data", "pack", report.folder, "DEST"]
        screen.show(next_steps([("into shards, which are read in order", pack)]))
    return ExitCode.DONE
