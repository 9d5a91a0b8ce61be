"""What holds the peak, and how a program ran out of memory, on a terminal."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import msgspec
from rich.console import Console

from hotloop.model.memory_account import HeldTensor
from hotloop.model.observation import Observation
from hotloop.model.out_of_memory import Holder, OutOfMemory
from hotloop.observe.profile.memory_remedies import HeldMemory, remedies
from hotloop.report.sections.memory_account import peak_in_short, peak_tables
from hotloop.report.sections.out_of_memory import out_of_memory_alone
from hotloop.report.terminal import walk
from tests.diagnose.memory_cases import CASES, GIB, line
from tests.diagnose.observations import observed


def _text(*blocks: object) -> str:
    console = Console(file=StringIO(), width=100)
    for block in blocks:
        console.print(block)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def _ran_out(**changes: object) -> OutOfMemory:
    lines = (line("aten._log_softmax.default", 3 * GIB), line("aten.gelu.default", 2 * GIB))
    by_class = {"activations": 6 * GIB, "optimizer_state": 2 * GIB, "parameters": GIB}
    held = HeldMemory(by_class=by_class, lines=lines, phase="forward")
    found = OutOfMemory(
        error="RuntimeError: can't allocate memory", device="cpu", asked_bytes=2 * GIB, at=lines[0], phase="forward",
        limit="the container's limit (cgroup)", limit_bytes=10 * GIB, free_bytes=GIB, held_bytes=9 * GIB,
        by_class=by_class, lines=lines, remedies=remedies(held, (GIB, GIB)), method="followed",
    )  # fmt: skip
    return msgspec.structs.replace(found, **changes)


def _screen(found: OutOfMemory) -> str:
    seen: Observation = observed(out_of_memory=found)
    document = out_of_memory_alone(seen)
    assert document is not None
    return _text(walk.render(document, verbose=True))


def test_the_screen_says_what_asked_what_held_the_rest_and_what_would_fit() -> None:
    text = _screen(_ran_out())
    assert (
        "Your program ran out of memory: it asked for 2.00 GiB at train.py:12 in the phase forward." in text
    )
    assert "the container's limit (cgroup): 10.0 GiB, of which 1.00 GiB were free" in text
    assert "activations" in text
    assert "66.7%" in text
    assert "aten._log_softmax.default float32 4096x50000" in text
    assert "hotloop memory plan --device 11GB" in text


def test_exact_changes_stand_before_others_and_say_whether_they_are_enough() -> None:
    found = _ran_out().remedies
    classes = [one.numerics.value for one in found]
    assert classes == sorted(classes, key=["exact", "tolerance", "semantic"].index)
    assert found[0].enough
    assert found[0].saved_bytes == 3 * GIB
    assert all(one.basis for one in found)


def test_one_sample_has_no_half() -> None:
    def offered(num_samples: int) -> set[str | None]:
        held = HeldMemory(by_class={"activations": 2 * GIB}, phase="forward", num_samples=num_samples)
        return {one.optimization for one in remedies(held, (GIB, GIB))}

    assert "gradient_accumulation" in offered(2)
    assert "gradient_accumulation" not in offered(1)


def test_a_killed_program_and_memory_that_is_in_no_tensor_are_said() -> None:
    found = _ran_out(
        killed=True, error="", asked_bytes=None, at=None, phase=None, by_class={}, held_bytes=0, lines=(),
        remedies=(), resident_bytes=5 * GIB,
    )  # fmt: skip
    text = _screen(found)
    assert "the kernel killed it" in text
    assert "5.00 GiB of it no tensors" in text
    assert "No change is known" in text


def test_a_request_that_is_larger_than_what_is_free_everywhere_is_said() -> None:
    found = _ran_out(asked_bytes=20 * GIB, free_bytes=9 * GIB, remedies=())
    assert "make it in parts" in _screen(found)


def test_graphs_of_past_steps_are_the_first_thing_to_release() -> None:
    kept = HeldTensor(held_bytes=4 * GIB, shape=(256, 10), dtype="float32", keeps_graph=True)
    found = remedies(HeldMemory(by_class={"other": 4 * GIB}, others=(kept,)), (GIB, GIB))
    assert "detach" in found[0].change


def test_beside_a_leak_a_smaller_step_only_puts_the_end_off() -> None:
    held = HeldMemory(by_class={"earlier_steps": 4 * GIB, "activations": 2 * GIB}, phase="forward")
    (found,) = remedies(held, (GIB, GIB))
    assert "detach" in found.change


def test_what_a_name_keeps_is_told_with_its_line() -> None:
    history = Holder(
        name="history", path="train.py", line=7, function="<module>", kind="list", num=118, held_bytes=3.0 * GIB,
        keeps_graph=False,
    )  # fmt: skip
    held = HeldMemory(by_class={"other": 4 * GIB}, holders=(history,))
    found = remedies(held, (0, GIB))
    assert "keep fewer entries in history" in found[0].change
    assert found[0].enough
    text = _screen(_ran_out(holders=(history,), remedies=found, in_worker=True, snapshot="file.pickle"))
    assert "A loader worker of your program ran out of memory" in text
    assert "list of 118" in text
    assert "file.pickle, for pytorch.org/memory_viz" in text


def test_matrices_of_scores_and_the_failing_request_count_among_what_a_change_saves() -> None:
    scores = [
        msgspec.structs.replace(line(name, 2 * GIB), shape=(2, 4, 4096, 4096))
        for name in ("aten._softmax.default", "aten.div.Tensor")
    ]
    asked = line("aten._log_softmax.default", GIB)
    held = HeldMemory(by_class={"activations": 5 * GIB}, lines=scores, phase="forward", asked=asked)
    saved = {one.optimization: one.saved_bytes for one in remedies(held)}
    assert saved["flash_attention"] == 4 * GIB
    assert saved["chunked_cross_entropy"] == GIB
    assert saved["gradient_accumulation"] == 3 * GIB


def test_a_parameter_s_gradient_does_not_shrink_with_the_batch() -> None:
    asked = line("aten.embedding_dense_backward.default", 4 * GIB)
    held = HeldMemory(
        by_class={"parameters": 4 * GIB, "activations": 8}, phase="parameter gradients", asked=asked
    )
    (found,) = remedies(held, (2 * GIB, 4 * GIB))
    assert "sparse=True" in found.change
    linear = msgspec.structs.replace(held, asked=line("aten.mm.default", 4 * GIB))
    assert remedies(linear, (2 * GIB, 4 * GIB)) == ()
    text = _screen(_ran_out(at=asked, by_class=held.by_class, resident_bytes=10 * GIB, remedies=()))
    assert "2.00 GiB by aten.embedding_dense_backward.default" in text
    assert "most of it is parameters" in text


def test_the_most_that_a_change_saves_may_be_enough_and_is_not_promised() -> None:
    text = _screen(_ran_out())
    assert "may be enough" in text


def test_an_evaluation_that_keeps_graphs_needs_no_grad_and_nothing_else() -> None:
    lines = (line("aten._log_softmax.default", 3 * GIB),)
    held = HeldMemory(by_class={"activations": 4 * GIB}, lines=lines, phase="evaluation", asked=lines[0])
    assert [one.optimization for one in remedies(held)] == ["no_grad_evaluation"]


def test_kernels_of_convolutions_are_no_matrices_of_scores() -> None:
    weights = msgspec.structs.replace(line("aten.empty.memory_format", GIB), shape=(512, 512, 3, 3))
    softmax = line("aten._softmax.default", GIB)
    found = remedies(HeldMemory(by_class={"activations": 4 * GIB}, lines=(weights, softmax), phase="forward"))
    assert "flash_attention" not in {one.optimization for one in found}


_ATTENTION = """
def attend(q, k, v):
    scores = q @ k.transpose(-2, -1) / 8
    return scores.softmax(-1) @ v

def gram(x):
    return (x @ x.transpose(-2, -1) / 8).log_softmax(-1)
"""


def test_scores_before_their_softmax_are_known_by_the_function_that_makes_them(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(_ATTENTION)
    size = 4 * 32 * 3000 * 3000
    scores = msgspec.structs.replace(
        line("aten.bmm.default", size), shape=(32, 3000, 3000), path=str(path), line=3, function="attend"
    )
    asked = msgspec.structs.replace(scores, operator="aten.div.Tensor", shape=None)
    held = HeldMemory(by_class={"activations": size}, lines=(scores,), phase="forward", asked=asked)
    saved = {one.optimization: one.saved_bytes for one in remedies(held)}
    assert saved["flash_attention"] == 2 * size
    assert "activation_checkpointing" not in saved, (
        "the block that asked holds them when it is recomputed, too"
    )
    other = msgspec.structs.replace(scores, line=7, function="gram")
    found = remedies(HeldMemory(by_class=held.by_class, lines=(other,), phase="forward"))
    assert "flash_attention" not in {one.optimization for one in found}


def test_of_blocks_on_one_line_all_but_the_one_under_way_are_saved() -> None:
    blocks = msgspec.structs.replace(line("aten.gelu.default", 12 * GIB), shape=(GIB // 4,), dtype="float32")
    held = HeldMemory(by_class={"activations": 12 * GIB}, lines=(blocks,), phase="forward", asked=blocks)
    saved = {one.optimization: one.saved_bytes for one in remedies(held)}
    assert saved["activation_checkpointing"] == 11 * GIB


def test_slack_of_a_device_is_a_change_of_its_allocator() -> None:
    held = HeldMemory(by_class={"activations": 5 * GIB}, device="cuda:0", slack_bytes=2 * GIB)
    assert {one.optimization: one.enough for one in remedies(held, (GIB, GIB))}["allocator_settings"]
    on_rocm = msgspec.structs.replace(held, on_rocm=True)
    assert "allocator_settings" not in {one.optimization for one in remedies(on_rocm, (GIB, GIB))}


def test_the_peak_is_told_with_its_place_its_classes_and_its_lines() -> None:
    account = CASES["loss-makes-peak"].memory.account
    assert account is not None
    short = _text(walk.render_blocks((peak_in_short(account),)))
    assert "8.00 GiB of tensors, in the phase backward, at backward of train.py:12" in short
    assert "temporaries 4.00 GiB" in short
    tables = _text(walk.render_blocks(tuple(peak_tables(account)), verbose=True))
    assert "the same in 2 steps" in tables
    assert "The peak of each phase" in tables


def test_an_observation_without_an_end_for_want_of_memory_has_no_such_screen() -> None:
    assert out_of_memory_alone(observed()) is None
