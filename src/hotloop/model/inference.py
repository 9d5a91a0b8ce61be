"""What a program that only evaluates or generates gives those who wait for it."""

from __future__ import annotations

import msgspec

PLATEAU = 0.95
"""Of the highest rate: what gives so much counts as giving it."""


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """How long something took that somebody waits for."""

    num: int
    p50_s: float
    low_s: float
    """Lower end of the 95% interval of the median."""
    high_s: float
    p95_s: float
    p99_s: float


class Inference(msgspec.Struct, frozen=True, kw_only=True):
    """What a program that only evaluates or generates gives those who wait for it.

    A request is what one step answers: a batch, or the text that is generated for one prompt (for one batch of them).
    """

    requests_per_s: float
    """Over whole steps, what the program does between requests included."""
    latency: Latency
    """Of a request: from the beginning of its first forward to the end of its last."""
    first_token: Latency | None = None
    """Until the first token is there: the prompt is read; None: nothing is generated, and so below."""
    between_tokens: Latency | None = None
    """From the end of a forward to the end of the next one."""
    forwards_per_request: float | None = None
    """The mean: so many tokens are generated for each prompt."""
    batch: int | None = None
    """Samples that the model was given at a time when others were tried; None: they were not."""
    by_batch: dict[int, Latency] = {}
    """Of the model alone, by the samples of a batch; empty: not tried."""
    latency_limit_s: float | None = None
    """That the user gave for a batch; None: none."""

    @property
    def best_batch(self) -> int | None:
        """The smallest size that gives nearly the most samples a second within the limit (p95); None: none is."""
        limit = self.latency_limit_s
        rates = {
            size: size / each.p50_s
            for size, each in self.by_batch.items()
            if limit is None or each.p95_s <= limit
        }
        most = max(rates.values(), default=0.0)
        return min((size for size, rate in rates.items() if rate >= PLATEAU * most), default=None)
