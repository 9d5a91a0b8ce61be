"""The fault library: base programs, faults of known size and form, and the finding each should give."""

from __future__ import annotations

from tests.faults.bases import BASES
from tests.faults.case import Case, Fault
from tests.faults.forms import helper, hooks, keywords, method
from tests.faults.kinds.compute import double_precision, tiny_batch, unfused
from tests.faults.kinds.data import (
    busy,
    inflating,
    reading,
    restarts,
    sample_by_sample,
    slow_batch,
    slow_sample,
    waiting,
)
from tests.faults.kinds.host import (
    anomaly_mode,
    averages,
    branches,
    collects_garbage,
    counts_in_python,
    logs_lines,
    logs_values,
    norms,
    prints,
    reads_each_value,
    row_by_row,
    tensor_from_list,
    threads,
    waits,
)
from tests.faults.kinds.run import checkpoint, evaluation

__all__ = ["BASES", "CASES", "Case"]


def _case(base: str, fault: Fault | None) -> Case:
    return Case(BASES[base], fault)


_DATA = (
    _case("conv_images", slow_sample("waiting", 1.5, waiting(1.5))),
    _case("transformer_tokens", slow_sample("busy", 8, busy(8), helper=True)),
    _case("autoencoder", slow_sample("waiting", 3, waiting(3), workers=1)),
    _case("cnn_epochs", slow_sample("busy", 2, busy(2))),
    _case("mlp_tabular", slow_sample("waiting", 2, waiting(2), workers=2)),
    _case("lstm_series", slow_sample("waiting", 0.15, waiting(0.15))),
    _case("mixer_accumulating", slow_sample("busy", 0.5, busy(0.5), helper=True)),
    _case("lightning_signals", slow_sample("inflating", 0.5, inflating(0.5))),
    _case("hf_causal", slow_sample("inflating", 1, inflating(1), helper=True)),
    _case("gnn_scatter", slow_sample("waiting", 25, waiting(25))),
    _case("speech_config", slow_sample("reading", 30, reading(30))),
    _case("conv_images", slow_sample("reading", 40, reading(40), workers=1)),
    _case("memmap_rows", slow_sample("busy", 12, busy(12), at="__getitems__")),
    _case("stream_iterable", slow_sample("waiting", 20, waiting(20), at="sample")),
    _case("transformer_tokens", slow_batch(20)),
    _case("autoencoder", slow_batch(12)),
    _case("memmap_rows", sample_by_sample(512)),
    _case("conv_images", restarts(256, 1)),
    _case("lstm_series", restarts(128, 2)),
    _case("autoencoder", restarts(192, 2, config=True)),
    _case("speech_config", restarts(128, 1)),
)
_HOST = (
    _case("conv_images", anomaly_mode()),
    _case("autoencoder", anomaly_mode("keyword")),
    _case("unet3d", anomaly_mode()),
    _case("lstm_series", anomaly_mode("kept")),
    _case("transformer_tokens", anomaly_mode("around")),
    _case("hf_causal", anomaly_mode()),
    _case("cnn_epochs", threads(8)),
    _case("transformer_tokens", threads(16)),
    _case("ddp_pair", threads(4)),
    _case("mixer_accumulating", logs_values(4000)),
    _case("mlp_tabular", logs_values(1000, helper)),
    _case("gan_shapes", logs_lines(300, method)),
    _case("speech_config", prints(3, keywords)),
    _case("autoencoder", norms(100)),
    _case("accelerate_tags", norms(40, hooks)),
    _case("gnn_scatter", collects_garbage()),
    _case("lightning_signals", collects_garbage(helper)),
    _case("memmap_rows", averages(8, method)),
    _case("hf_causal", averages(12)),
    _case("stream_iterable", counts_in_python(200_000, keywords)),
    _case("cnn_epochs", counts_in_python(60_000)),
    _case("lightning_signals", waits(12)),
    _case("lstm_series", reads_each_value(2000, 3)),
    _case("conv_images", reads_each_value(300, 25, helper)),
    _case("lightning_signals", reads_each_value(180, 40, method)),
    _case("mlp_tabular", row_by_row(60, 12)),
    _case("gnn_scatter", row_by_row(200, 4, keywords)),
    _case("speech_config", branches(1500)),
    _case("accelerate_tags", branches(800, helper)),
    _case("gan_shapes", tensor_from_list(40_000)),
    _case("memmap_rows", tensor_from_list(60_000, hooks)),
)
_COMPUTE = (
    _case("mlp_tabular", unfused(32)),
    _case("transformer_tokens", unfused(10)),
    _case("lstm_series", unfused(12, foreach=True)),
    _case("stream_iterable", unfused(24, foreach=False)),
    _case("hf_causal", tiny_batch(1)),
    _case("mlp_tabular", tiny_batch(1)),
    _case("lstm_series", tiny_batch(2)),
    _case("mixer_accumulating", tiny_batch(1)),
    _case("conv_images", tiny_batch(1)),
    _case("autoencoder", double_precision()),
    _case("mlp_tabular", double_precision()),
    _case("accelerate_tags", double_precision()),
)
_RUN = (
    _case("autoencoder", evaluation(4, 30)),
    _case("lstm_series", evaluation(1, 4)),
    _case("mlp_tabular", evaluation(10, 20, helper, "inference_mode")),
    _case("gnn_scatter", evaluation(8, 20, method)),
    _case("speech_config", evaluation(6, 20, keywords)),
    _case("conv_images", checkpoint(1, 20)),
    _case("mlp_tabular", checkpoint(5, 5)),
    _case("gan_shapes", checkpoint(3, 8, helper)),
    _case("policy_gradient", checkpoint(1, 12, method)),
    _case("lightning_signals", checkpoint(4, 60)),
)
CASES: tuple[Case, ...] = (*(_case(base, None) for base in BASES), *_DATA, *_HOST, *_COMPUTE, *_RUN)
