"""`--metrics`, `--otlp` and `--nvtx`: what a run shows other tools."""

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


class Collector(click.ParamType):  # type: ignore[type-arg]
    """`http://localhost:4318`."""

    name = "URL"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the address."""
        if not str(value).startswith(("http://", "https://")):
            self.fail(f"{value!r} is not an address, such as http://localhost:4318", param, ctx)
        return str(value)


def live_options(function: Any) -> Any:
    """Add the options."""
    function = click.option("--nvtx", is_flag=True, help="Mark phases as NVTX ranges for Nsight Systems.")(
        function
    )
    function = click.option(
        "--otlp",
        type=Collector(),
        help="Send the same to an OpenTelemetry collector, by OTLP over HTTP (http://localhost:4318).",
    )(function)
    return click.option(
        "--metrics",
        type=Address(),
        help="Serve steps, step times and phases for Prometheus at this port (of 127.0.0.1, or HOST:PORT).",
    )(function)


def followers(metrics: tuple[str, int] | None, otlp: str | None, *, nvtx: bool) -> tuple[dict[str, Any], ...]:
    """Return what the probe is told.

    Raises:
        HotloopError: a library that is needed is not installed.
    """
    orders: list[dict[str, Any]] = []
    if metrics is not None:
        _check("--metrics", "prometheus_client", "metrics")
        host, port = metrics
        orders.append(_order("--metrics", "prometheus", {"host": host, "port": port}))
    if otlp is not None:
        _check("--otlp", "opentelemetry.exporter.otlp.proto.http", "otlp")
        orders.append(_order("--otlp", "otlp", {"url": otlp}))
    if nvtx:
        orders.append(_order("--nvtx", "nvtx", {}))
    return tuple(orders)


def _order(name: str, module: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "module": f"hotloop.probe.live.{module}", "params": params}


def _check(option: str, module: str, extra: str) -> None:
    try:
        found = find_spec(module)
    except ModuleNotFoundError:  # of a package around it
        found = None
    if found is None:
        raise HotloopError(
            f"{option} needs {module.partition('.')[0]}, which is not installed",
            f"pip install 'hotloop[{extra}]'",
            ExitCode.MACHINE,
        )
