"""What is said about a trace of which every figure is known."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hotloop.model.errors import HotloopError
from hotloop.model.finding import Severity
from hotloop.model.outcome import Outcome
from hotloop.report.sections.trace.report import trace_document
from hotloop.report.terminal.walk import render
from hotloop.trace import TraceAnalysis, analyze, analyze_trace, read_trace
from hotloop.trace.compare.budget import check_gate, parse_gate
from hotloop.trace.facts.work import parse_arguments, work_of
from tests.report.results import shown
from tests.trace.example import example_trace, host, kernel


def _analyze(tmp_path: Path, trace: dict[str, Any]) -> TraceAnalysis:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(trace))
    return analyze_trace(read_trace(path))


def test_timeline_of_the_example(small_trace: Path) -> None:
    device = analyze_trace(read_trace(small_trace)).device
    assert device is not None
    assert (device.span_us, device.busy_us, device.idle_us) == (36.0, 32.0, 4.0)
    assert (device.compute_us, device.memory_us, device.communication_us) == (30.0, 2.0, 0.0)


def test_step_idle_goes_to_its_causes(small_trace: Path) -> None:
    (step,) = analyze_trace(read_trace(small_trace)).steps
    assert (step.span_us, step.busy_us, step.idle_us, step.data_us) == (198.0, 32.0, 166.0, 40.0)
    causes = {name: value for name, value in step.idle_causes.items() if value}
    # data 10-50; dispatch 60-80 and 82-84; launched at 70, not running until 90 while the host waits 89-90;
    # the copy is queued behind the matmul, and the device needs 120-124 to begin with it; the host is inside the wait
    # 126-130; item() runs on to 140; the rest is Python.
    assert causes["data_us"] == 40.0
    assert causes["synchronization_us"] == 5.0
    assert causes["queue_us"] == 4.0
    assert causes["copy_us"] == 4.0
    assert sum(causes.values()) == 166.0
    assert causes["host_us"] == pytest.approx(166 - 40 - 5 - 4 - 4 - causes["launch_us"])


def test_sync_has_call_operators_and_line(small_trace: Path) -> None:
    (site,) = analyze_trace(read_trace(small_trace)).syncs
    assert site.call == "cudaStreamSynchronize"
    assert site.under == ("aten::item", "aten::_local_scalar_dense")
    assert (site.path, site.line, site.function) == ("train.py", 10, "step")
    assert site.total_us == 41.0


def test_operator_has_its_kernels_and_its_rate(small_trace: Path) -> None:
    row = next(row for row in analyze_trace(read_trace(small_trace)).operators if row.name == "aten::mm")
    assert (row.num_kernels, row.device_us, row.host_us, row.host_self_us) == (1, 30.0, 20.0, 15.0)
    assert row.flops == 2 * 64 * 32 * 16
    assert row.size_bytes == 4 * (64 * 32 + 32 * 16 + 64 * 16)
    assert row.tflops_per_s == pytest.approx(2 * 64 * 32 * 16 / 30e-6 / 1e12)
    assert row.tensor_cores == "fp32"
    assert row.bound == "memory"


def test_kernel_rows(small_trace: Path) -> None:
    gemm, copy = analyze_trace(read_trace(small_trace)).kernels
    assert (gemm.name, gemm.kind, gemm.num, gemm.operator, gemm.queue_us) == (
        "sgemm_64x32",
        "compute",
        1,
        "aten::mm",
        20.0,
    )
    assert (copy.kind, copy.total_us) == ("memcpy", 2.0)


def test_unlinked_and_dropped_kernels_are_told(tmp_path: Path) -> None:
    trace = example_trace()
    trace["traceEvents"] += [
        kernel("lost_launch", 130, 131, 77),
        host("cuda_runtime", "cudaLaunchKernel", 150, 152, correlation=78),
    ]
    notes = {note.code: note for note in _analyze(tmp_path, trace).health}
    assert (notes["unlinked-kernels"].num, notes["unlinked-kernels"].total) == (1, 3)
    assert notes["dropped-kernels"].num == 1


def test_graph_replays_are_told(tmp_path: Path) -> None:
    trace = example_trace()
    trace["traceEvents"] += [host("cuda_runtime", "cudaGraphLaunch", 150, 155, correlation=90)]
    notes = {note.code: note for note in _analyze(tmp_path, trace).health}
    assert notes["graph-replays"].severity == "warning"
    trace["traceEvents"] += [kernel("inside", 156, 158, 90), kernel("inside", 158, 159, 90)]
    notes = {note.code: note for note in _analyze(tmp_path, trace).health}
    assert "2 of their kernels" in notes["graph-replays"].message


def test_a_step_without_device_events_is_told(tmp_path: Path) -> None:
    trace = example_trace()
    trace["traceEvents"] += [
        host("user_annotation", "ProfilerStep#2", 300, 400),
        host("cpu_op", "aten::add", 310, 320),
    ]
    notes = {note.code: note for note in _analyze(tmp_path, trace).health}
    assert (notes["empty-steps"].num, notes["empty-steps"].total) == (1, 2)


def test_memory_timeline(tmp_path: Path) -> None:
    trace = example_trace()
    for at, moved, total in ((5, 100, 1100), (20, 400, 1500), (30, -500, 1000)):
        trace["traceEvents"].append(
            {
                "ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": at,
                "args": {
                    "Bytes": moved, "Total Allocated": total, "Total Reserved": 2048, "Device Type": 1, "Device Id": 0,
                },
            }
        )  # fmt: skip
    (use,) = _analyze(tmp_path, trace).memory
    assert (use.peak_bytes, use.peak_at_us, use.reserved_peak_bytes, use.churn_bytes) == (
        1500,
        20.0,
        2048,
        500,
    )
    assert use.absolute


def test_memory_of_the_cpu_counts_from_the_start_of_the_trace(tmp_path: Path) -> None:
    """Torch's total is what was not freed since the first profile of the process, the model not among it."""
    args = {"Bytes": 100, "Total Allocated": 90100, "Total Reserved": 0, "Device Type": 0, "Device Id": -1}
    event = {
        "ph": "i",
        "cat": "cpu_instant_event",
        "name": "[memory]",
        "pid": 1,
        "tid": 1,
        "ts": 5,
        "args": args,
    }
    (use,) = _analyze(tmp_path, {**example_trace(), "traceEvents": [event]}).memory
    assert (use.device, use.peak_bytes, use.absolute) == ("cpu", 100, False)


def test_json_has_the_contracts_names(small_trace: Path) -> None:
    document = msgspec.json.decode(msgspec.json.encode(analyze(small_trace)))
    (trace,) = document["traces"]
    assert {
        "span_us", "busy_us", "idle_us", "compute_us", "communication_us", "memory_us", "overlap_us",
        "exposed_communication_us", "exposed_memory_us",
    } <= trace["device"].keys()  # fmt: skip
    assert {"health", "kernels", "operators", "findings", "idle_causes"} <= trace.keys()
    assert all(name.endswith("_us") for name in trace["idle_causes"])
    assert {"code", "title", "severity", "cost_s", "evidence", "optimization"} <= trace["findings"][0].keys()
    assert document["schema"] == 1


def test_gates(small_trace: Path) -> None:
    analysis = analyze_trace(read_trace(small_trace))
    kept, broken, unknown = Outcome.PASSED, Outcome.FAILED, Outcome.NOT_JUDGED
    for text, outcome in (
        ("idle<10%", broken), ("idle<12%", kept), ("busy>=32us", kept), ("syncs<1", broken), ("syncs<=1", kept),
        ("idle_causes.data<1ms", kept), ("peak_memory<1GB", unknown), ("idle_causes.nonsense<1%", unknown),
    ):  # fmt: skip
        assert check_gate(parse_gate(text), analysis).outcome is outcome, text
    for text in ("idle", "nonsense<1", "idle<ten%"):
        with pytest.raises(HotloopError):
            parse_gate(text)


def test_no_sync_events_no_critical_path(small_trace: Path) -> None:
    analysis = analyze_trace(read_trace(small_trace))
    assert analysis.critical_path is None
    assert "cuda_sync" in (analysis.critical_path_missing or "")


def test_coverage_is_a_share_of_device_time(small_trace: Path) -> None:
    coverage = analyze_trace(read_trace(small_trace)).coverage
    assert coverage is not None
    assert (coverage.launch_share, coverage.operator_share) == (1.0, 1.0)
    assert coverage.work_share == pytest.approx(30 / 32)


def test_the_mark_after_the_last_step_is_no_step(tmp_path: Path) -> None:
    trace = example_trace()
    loading = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    trace["traceEvents"] += [
        host("user_annotation", "ProfilerStep#2", 200, 220),
        host("user_annotation", loading, 201, 219),
        host("cpu_op", "aten::stack", 202, 218),
    ]
    analysis = _analyze(tmp_path, trace)
    assert [step.number for step in analysis.steps] == [1]
    assert "empty-steps" not in {note.code for note in analysis.health}


def test_steps_without_a_device_have_neither_busy_nor_idle_time(tmp_path: Path) -> None:
    trace = example_trace()
    trace["traceEvents"] = [event for event in trace["traceEvents"] if event["pid"] != 0]
    (step,) = _analyze(tmp_path, trace).steps
    assert (step.span_us, step.data_us) == (198.0, 40.0)
    assert (step.busy_us, step.idle_us, step.idle_causes) == (None, None, {})


def test_a_wait_costs_what_the_device_stood_still_for_it(tmp_path: Path) -> None:
    """The host waits for 800 us, in which the device works: nothing is won without the wait."""
    trace = example_trace()
    trace["traceEvents"] = [
        host("user_annotation", "ProfilerStep#1", 0, 1000),
        host("cpu_op", "aten::mm", 0, 20),
        host("cuda_runtime", "cudaLaunchKernel", 5, 10, correlation=1),
        kernel("gemm", 20, 900, 1),
        host("cpu_op", "aten::item", 90, 910),
        host("cuda_runtime", "cudaStreamSynchronize", 100, 905, correlation=2),
        host("cpu_op", "aten::mm", 920, 930),
        host("cuda_runtime", "cudaLaunchKernel", 921, 925, correlation=3),
        kernel("gemm", 930, 990, 3),
    ]
    analysis = _analyze(tmp_path, trace)
    (site,) = analysis.syncs
    assert (site.total_us, site.idle_us) == (805.0, analysis.idle_causes["synchronization_us"])
    (finding,) = [one for one in analysis.findings if one.code == "sync-in-step"]
    assert finding.severity is Severity.INFO
    assert finding.cost_s == pytest.approx(site.idle_us / 1e6)


def _pipeline() -> dict[str, Any]:
    """Two devices in turn: what the second does waits in its queue for the first, 100 us each."""
    events = [host("user_annotation", "ProfilerStep#1", 0, 250)]
    for device, at in ((0, 10), (1, 12)):
        start = 20 + 100 * device
        work = kernel("gemm", start, start + 100, device + 1)
        work["args"]["device"] = work["pid"] = device
        events += [host("cuda_runtime", "cudaLaunchKernel", at, at + 1, correlation=device + 1), work]
    again = kernel("gemm", 16, 18, 4)
    again["args"]["device"] = again["pid"] = 1
    events += [again, host("cuda_runtime", "cudaLaunchKernel", 9, 10, correlation=4)]
    events.append(host("cuda_runtime", "cudaDeviceSynchronize", 60, 225, correlation=3))
    return {**example_trace(), "traceEvents": events}


def test_devices_of_one_file_are_told_apart(tmp_path: Path) -> None:
    analysis = _analyze(tmp_path, _pipeline())
    first, second = analysis.devices
    assert (first.time.span_us, first.time.idle_us) == (100.0, 0.0)
    assert (second.time.span_us, second.time.busy_us, second.time.idle_us) == (204.0, 102.0, 102.0)
    assert second.idle_causes["device_us"] == 102.0
    assert analysis.device == second.time, "it was busy for longer"
    assert check_gate(parse_gate("idle<40%"), analysis).outcome is Outcome.FAILED
    assert check_gate(parse_gate("idle<60%"), analysis).outcome is Outcome.PASSED


def _launched(
    operator: str, work: str, at: float, number: int, *, cat: str = "kernel", **args: Any
) -> list[dict[str, Any]]:
    """An operator of 20 us, and what it launches: 100 us on the device."""
    return [
        host("cpu_op", operator, at, at + 20, **args),
        host("cuda_runtime", "cudaLaunchKernel", at + 5, at + 8, correlation=number),
        kernel(work, at + 30, at + 130, number, cat=cat),
    ]


def test_tf32_is_told_of_each_product_by_its_kernels(tmp_path: Path) -> None:
    """What cuDNN does by default and matrix products do not: the one is on the matrix units, the other is not."""
    floats: dict[str, Any] = {"Input type": ["float", "float"]}
    shaped: dict[str, Any] = {**floats, "Input Dims": [[1]]}
    product: dict[str, Any] = {**floats, "Input Dims": [[64, 32], [32, 16]]}
    events = [
        *_launched("aten::cudnn_convolution", "sm80_xmma_fprop_implicit_gemm_tf32f32", 0, 1, **floats),
        *_launched("aten::mm", "ampere_sgemm_128x64_nn", 200, 2, **product),
        *_launched("aten::cudnn_convolution", "cudnn_ampere_scudnn_128x64", 400, 3, **shaped),
    ]
    analysis = _analyze(tmp_path, {**example_trace(), "traceEvents": events})
    notes = {(row.name, row.shapes): row.tensor_cores for row in analysis.operators}
    assert notes["aten::cudnn_convolution", None] is None
    assert notes["aten::cudnn_convolution", "[[1]]"] == "fp32"
    assert notes["aten::mm", "[[64,32],[32,16]]"] == "fp32"
    (finding,) = [one for one in analysis.findings if one.code == "fp32-matmul"]
    assert finding.evidence.startswith("200 us")


@pytest.mark.parametrize(
    ("copy", "codes"),
    [
        ("Memcpy DtoD (Device -> Device)", {"extra-copies"}),
        ("Memcpy HtoD (Pageable -> Device)", {"pageable-copy"}),
        ("Memcpy HtoD (Pinned -> Device)", set()),
        ("Memcpy DtoH (Device -> Pageable)", set()),
    ],
)
def test_a_copy_is_what_its_direction_says(copy: str, codes: set[str], tmp_path: Path) -> None:
    """What comes from the host is no needless clone, and what goes to it no DataLoader can pin."""
    events = _launched("aten::copy_", copy, 0, 1, cat="gpu_memcpy")
    found = {one.code for one in _analyze(tmp_path, {**example_trace(), "traceEvents": events}).findings}
    assert found == codes


@pytest.mark.parametrize(
    ("frame", "num"),
    [
        ("torch/_inductor/compile_fx.py(1919): run", 0),
        ("torch/_inductor/compile_fx.py(788): compile_fx_inner", 1),
        ("torch/_dynamo/convert_frame.py(1120): __call__", 1),
    ],
)
def test_what_a_compiled_model_runs_through_is_no_compilation(frame: str, num: int, tmp_path: Path) -> None:
    trace = example_trace()
    trace["traceEvents"].append(host("python_function", frame, 60, 140))
    codes = [finding.code for finding in _analyze(tmp_path, trace).findings]
    assert codes.count("recompilation") == num


def test_modules_of_a_trace_without_a_device_are_told_by_host_time(tmp_path: Path) -> None:
    events = [
        host("user_annotation", "ProfilerStep#1", 0, 1000),
        host("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 250),
        host("python_function", "nn.Module: Linear_0", 300, 400),
        host("python_function", "nn.Module: Encoder_0", 500, 900),
        host("cpu_op", "aten::mm", 510, 890),
    ]
    (tmp_path / "cpu.json").write_text(json.dumps({"traceEvents": events}))
    screen = shown(render(trace_document(analyze(tmp_path / "cpu.json"), (), 10), verbose=True))
    assert "a step takes 1.00 ms (median); 25.0% of all steps\nwas in the DataLoader" in screen
    assert "Encoder_0      1        0.40\nLinear_0       1        0.10" in screen


@pytest.mark.parametrize("how", ["cut", "dropped", "graphs"])
def test_nothing_is_said_of_idle_time_where_device_work_is_missing(how: str, tmp_path: Path) -> None:
    """What was lost may have filled the gaps: neither the host nor the loader is to blame for them."""
    trace = example_trace()
    trace["traceEvents"] += [kernel("gemm", 900, 950, 60), host("cpu_op", "aten::mul", 300, 800)]
    assert {"launch-bound"} <= {one.code for one in _analyze(tmp_path, trace).findings}
    if how != "cut":
        call = "cudaGraphLaunch" if how == "graphs" else "cudaLaunchKernel"
        trace["traceEvents"].append(host("cuda_runtime", call, 500, 502, correlation=77))
    text = json.dumps(trace)
    path = tmp_path / "trace.json"
    path.write_text(text[: text.index('], "traceName"')] if how == "cut" else text)
    analysis = analyze_trace(read_trace(path))
    assert not {"launch-bound", "sync-in-step", "input-bound"} & {one.code for one in analysis.findings}
    assert check_gate(parse_gate("idle<10%"), analysis).outcome is Outcome.NOT_JUDGED
    screen = shown(render(trace_document(analyze(path), (), 10), verbose=True))
    assert screen.startswith("Device work is missing from the trace: idle time is at most 9")
    assert "idle because of" not in screen


def test_the_loader_that_takes_the_time_is_named(tmp_path: Path) -> None:
    """The program trains with workers, and evaluates one batch without."""
    events = [
        host("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 40, 60),
        host("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 100, 900),
        *_launched("aten::add", "add", 0, 1),
        *_launched("aten::add", "add", 900, 2),
    ]
    analysis = _analyze(tmp_path, {**example_trace(), "traceEvents": events})
    (finding,) = [one for one in analysis.findings if one.code == "input-bound"]
    assert "workers that are too slow" in finding.title


@pytest.mark.parametrize(
    ("dtype", "bound"),
    [("float", "memory"), ("c10::BFloat16", "memory"), ("double", None), ("c10::Float8_e4m3fn", None)],
)
def test_a_roof_is_told_of_types_whose_rate_is_known(dtype: str, bound: str | None, tmp_path: Path) -> None:
    """In fp8 a device is twice as fast as in half precision, and in fp64 it may be 64 times slower than in fp32."""
    arguments: dict[str, Any] = {"Input Dims": [[64, 32], [32, 16]], "Input type": [dtype, dtype]}
    events = _launched("aten::mm", "gemm", 0, 1, **arguments)
    (row,) = _analyze(tmp_path, {**example_trace(), "traceEvents": events}).operators
    assert (row.bound, row.roof_share is None) == (bound, bound is None)
    assert row.flops == 2 * 64 * 32 * 16


def test_a_transposed_convolution_works_at_each_of_its_inputs() -> None:
    """Twice as large an output in both directions, 64 to 32 channels: two products of 2 * 8*64*16*16 * 32*4*4."""
    dims = [[8, 32, 32, 32], [8, 64, 16, 16], [64, 32, 4, 4]]
    concrete = ["", "", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "True", "[0, 0]", "1", "[True, True, False]"]
    arguments = parse_arguments(
        json.dumps(dims).encode(), json.dumps(["float"] * 3).encode(), json.dumps(concrete).encode()
    )
    assert arguments is not None
    work = work_of("aten::convolution_backward", arguments)
    assert work is not None
    assert work.flops == 2 * (2 * 8 * 64 * 16 * 16 * 32 * 4 * 4)


@pytest.mark.parametrize(
    ("work", "codes"),
    [
        ("multi_tensor_apply_kernel<FusedAdamMathFunctor<float, 4>>", set()),
        ("multi_tensor_apply_kernel<BinaryOpListAlphaFunctor<float>>", {"unfused-optimizer"}),
        ("vectorized_elementwise_kernel<4>", {"single-tensor-loop"}),
    ],
)
def test_a_fused_optimizer_of_a_large_model_is_not_called_unfused(
    work: str, codes: set[str], tmp_path: Path
) -> None:
    events = [host("user_annotation", "Optimizer.step#AdamW.step", 0, 40_000)]
    for number in range(1, 41):
        events += _launched("aten::op", work, 900 * number, number)
    found = {one.code for one in _analyze(tmp_path, {**example_trace(), "traceEvents": events}).findings}
    assert found & {"unfused-optimizer", "single-tensor-loop"} == codes
