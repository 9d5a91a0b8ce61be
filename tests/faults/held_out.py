"""Faults in fresh base programs, which no rule was changed for: how `diagnose` does on programs it does not know."""

from __future__ import annotations

from tests.faults.case import Base, Case, Fault
from tests.faults.forms import helper, hooks, keywords, method
from tests.faults.kinds.compute import double_precision, tiny_batch, unfused
from tests.faults.kinds.data import busy, inflating, restarts, slow_sample, waiting
from tests.faults.kinds.host import (
    anomaly_mode,
    averages,
    branches,
    counts_in_python,
    logs_values,
    reads_each_value,
    row_by_row,
    waits,
)
from tests.faults.kinds.run import checkpoint, evaluation

FRESH = {
    base.name: base
    for base in (
        Base("skip_gram", "vectors", "center, context, wrong", "far", fresh=True),
        Base("contrast_views", "self.encoder", "picture", "codes", step_at="self.sgd.step()", fresh=True),
        Base("patch_vit", "vit", "x", "guess", step_at="adamw.step()", fresh=True),
        Base(
            "fabric_segments",
            "unet",
            "batch['picture']",
            "drawn",
            backward_at="fabric.backward(loss)",
            fresh=True,
        ),
        Base("q_learning", "online", "before", "values", fresh=True),
        Base(
            "bert_tagging",
            "model",
            "inputs['input_ids']",
            "found.logits",
            step_at="self.turns += 1",
            backward_at="return (found.loss, found)",
            fresh=True,
        ),
    )
}


def _case(base: str, fault: Fault | None) -> Case:
    return Case(FRESH[base], fault)


HELD_OUT: tuple[Case, ...] = (
    *(_case(base, None) for base in FRESH),
    _case("skip_gram", slow_sample("busy", 8, busy(8))),
    _case("contrast_views", slow_sample("inflating", 0.4, inflating(0.4), helper=True)),
    _case("fabric_segments", slow_sample("waiting", 4, waiting(4), workers=2)),
    _case("contrast_views", restarts(192, 1, config=True)),
    _case("patch_vit", anomaly_mode("kept")),
    _case("bert_tagging", anomaly_mode("keyword")),
    _case("patch_vit", averages(15, hooks)),
    _case("fabric_segments", logs_values(3000, method)),
    _case("skip_gram", counts_in_python(80_000, helper)),
    _case("q_learning", waits(6)),
    _case("fabric_segments", reads_each_value(1200, 6, keywords)),
    _case("contrast_views", row_by_row(80, 8, helper)),
    _case("bert_tagging", branches(1000)),
    _case("q_learning", unfused(16)),
    _case("patch_vit", tiny_batch(1)),
    _case("skip_gram", double_precision()),
    _case("contrast_views", evaluation(5, 12, keywords)),
    _case("bert_tagging", checkpoint(2, 6)),
)
