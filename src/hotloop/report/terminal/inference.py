"""Latency and throughput of a program that trains nothing, as text."""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.model.inference import Inference, Latency
from hotloop.model.quantities import counted, duration, rate


def rows(found: Inference) -> Iterator[tuple[str, str]]:
    """Yield what is said of it, in words and figures."""
    latency = found.latency
    yield "request", f"{counted(latency.num, 'request')}, {rate(found.requests_per_s)} requests/s"
    yield "latency", _said(latency)
    if found.first_token is not None:
        yield "first token", _said(found.first_token)
    if found.between_tokens is not None:
        yield "next tokens", _said(found.between_tokens)
    if found.forwards_per_request is not None:
        yield "", f"{found.forwards_per_request:.3g} tokens for each prompt"


def batches(found: Inference) -> Iterator[tuple[str, str]]:
    """Yield what the model alone was measured to take of batches of each size; nothing where none was tried."""
    for size, each in found.by_batch.items():
        now = " (now)" if size == found.batch else ""
        best = "; more bring little" if size == found.best_batch else ""
        yield f"{counted(size, 'sample')}{now}", f"{_short(each)}, {rate(size / each.p50_s)} samples/s{best}"
    limit_s = found.latency_limit_s
    if found.by_batch and found.best_batch is None and limit_s is not None:
        yield "", f"none keeps to {duration(limit_s)} in 95 of a hundred batches"


def _short(latency: Latency) -> str:
    interval = f"[{duration(latency.low_s)}, {duration(latency.high_s)}]"
    return f"{duration(latency.p50_s)} {interval}, p95 {duration(latency.p95_s)}"


def _said(latency: Latency) -> str:
    return f"p50 {_short(latency)}, p99 {duration(latency.p99_s)}"
