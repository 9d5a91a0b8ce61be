"""Write the host samples in the forms that other viewers read."""

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

    def check(self, *, looks: bool) -> None:
        """Demand that they can be written, before the program is run.

        Args:
            looks: whether host samples are taken at all.

        Raises:
            HotloopError: a file cannot be written.
        """
        asked = [path for path in (self.speedscope, self.cprofile) if path is not None]
        if asked and not looks:
            raise click.UsageError(
                "--speedscope and --cprofile need host samples: leave out --no-deep, --full"
            )
        for path in asked:
            check_writable(path)

    def write(self, observation: Observation) -> None:
        """Write them.

        Raises:
            HotloopError: there are no samples, or a file cannot be written.
        """
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
