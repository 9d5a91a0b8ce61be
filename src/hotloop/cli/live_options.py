"""`--metrics` and `--nvtx`: what a run shows other tools."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import click

from hotloop.model.errors import ExitCode, HotloopError

HOST = "127.0.0.1"
"""Nobody on the network sees a program's speed unless the user says so."""


class Address(click.ParamType):  # type: ignore[type-arg]
    """`9100`, or `0.0.0.0:9100`."""

    name = "PORT"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """Return host and port."""
        if isinstance(value, tuple):
            return value
        host, _, port = str(value).rpartition(":")
        if not port.isdecimal() or not 0 < int(port) < 65536:
            self.fail(f"{value!r} is not a port, such as 9100, or 0.0.0.0:9100", param, ctx)
        return host or HOST, int(port)


def live_options(function: Any) -> Any:
    """Add the options."""
    function = click.option(
        "--nvtx", is_flag=True, help="A range for each phase, for a capture of Nsight Systems."
    )(function)
    return click.option(
        "--metrics",
        type=Address(),
        help="Serve steps, step times and phases for Prometheus at this port (of 127.0.0.1, or HOST:PORT).",
    )(function)


def followers(metrics: tuple[str, int] | None, *, nvtx: bool) -> tuple[dict[str, Any], ...]:
    """Return what the probe is told.

    Raises:
        HotloopError: prometheus_client is not installed.
    """
    orders: list[dict[str, Any]] = []
    if metrics is not None:
        if find_spec("prometheus_client") is None:
            raise HotloopError(
                "--metrics needs prometheus_client", "pip install 'hotloop[metrics]'", ExitCode.MACHINE
            )
        host, port = metrics
        params = {"host": host, "port": port}
        orders.append({"name": "--metrics", "module": "hotloop.probe.live.metrics", "params": params})
    if nvtx:
        orders.append({"name": "--nvtx", "module": "hotloop.probe.live.nvtx"})
    return tuple(orders)
