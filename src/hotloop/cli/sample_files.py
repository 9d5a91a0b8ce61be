"""Write the host samples, and the memory of a few steps, in the forms that other viewers read."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

import click

from hotloop.cli.files import check_writable, write_bytes, write_json
from hotloop.model.errors import HotloopError
from hotloop.model.observation import Observation
from hotloop.report.formats.cprofile import cprofile
from hotloop.report.formats.speedscope import speedscope


@dataclass(frozen=True, kw_only=True)
class SampleFiles:
    """The files that were asked for; None: this one was not."""

    speedscope: Path | None
    cprofile: Path | None
    memory_snapshot: Path | None = None

    @property
    def part(self) -> Path | None:
        """Where the snapshot of memory is made; None: it was not asked for."""
        return self.memory_snapshot and self.memory_snapshot.with_name(f"{self.memory_snapshot.name}.part")

    def check(self, *, looks: bool) -> None:
        """Demand that there will be something to write, and that the snapshot can be, before the program is run.

        Args:
            looks: whether host samples are taken at all.

        Raises:
            UsageError: nothing is looked at.
            HotloopError: the snapshot cannot be written.
        """
        if any((self.speedscope, self.cprofile, self.memory_snapshot)) and not looks:
            raise click.UsageError(
                "--speedscope, --cprofile and --memory-snapshot need detailed profiling: leave out --no-deep, --full"
            )
        if self.memory_snapshot is not None:
            check_writable(self.memory_snapshot)

    def write(self, observation: Observation) -> None:
        """Write them.

        Raises:
            HotloopError: there are no samples, or a file cannot be written.
        """
        self._write_snapshot()
        if self.speedscope is None and self.cprofile is None:
            return
        host = observation.deep.host if observation.deep else None
        if host is None:
            raise HotloopError(
                "the program ended before its stacks could be sampled, so there is nothing to write",
                "measure less before: hotloop observe --steps 3 ...",
            )
        if self.speedscope is not None:
            write_json(self.speedscope, speedscope(host, shlex.join(observation.command)))
        if self.cprofile is not None:
            write_bytes(self.cprofile, cprofile(host))

    def _write_snapshot(self) -> None:
        if self.memory_snapshot is None or self.part is None:
            return
        if not self.part.exists():
            raise HotloopError(
                "memory was not looked at, so there is no snapshot to write (see `not measured` above)",
                "give it more time: --seconds",
            )
        self.part.replace(self.memory_snapshot)
