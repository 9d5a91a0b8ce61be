"""Every published figure, on traces from real devices."""

from pathlib import Path
from typing import Any

import pytest

from hotloop.trace import TraceReport, analyze
from hotloop.trace.analysis import TraceAnalysis
from hotloop.trace.causes.critical_path import CriticalPath, critical_path
from hotloop.trace.link.linked_trace import link_trace
from hotloop.trace.read.reader import read_trace

_NAMES = {
    "n": "num",
    "comm_us": "communication_us",
    "mem_us": "memory_us",
    "overlap_comp_comm_us": "overlap_us",
    "exposed_comm_us": "exposed_communication_us",
    "exposed_mem_us": "exposed_memory_us",
}


@pytest.fixture(scope="module")
def report(shared: Path) -> TraceReport:
    return analyze(shared, jobs=1)


def _of(report: TraceReport, file: str) -> TraceAnalysis:
    return next(analysis for analysis in report.traces if analysis.file.startswith(file))


def test_device_figures_are_exact(report: TraceReport, truth: dict[str, Any]) -> None:
    assert len(truth["device"]) == 22
    for file, figures in truth["device"].items():
        device = _of(report, file).device
        assert device is not None, file
        for name, expected in figures.items():
            if name == "idle_pct":
                assert 100 * device.idle_us / device.span_us == pytest.approx(expected, abs=5e-4), file
            else:
                assert getattr(device, _NAMES.get(name, name)) == pytest.approx(expected, abs=1e-6), (
                    file,
                    name,
                )


def test_idle_causes_sum_to_idle(report: TraceReport) -> None:
    for analysis in report.traces:
        if analysis.device is not None:
            assert round(1000 * sum(analysis.idle_causes.values())) == round(
                1000 * analysis.device.idle_us
            ), analysis.file


def test_the_labelled_pair_is_told_apart(report: TraceReport, truth: dict[str, Any]) -> None:
    for workers in (0, 4):
        file = f"resnet50_workers{workers}_v100.json.gz"
        expected = truth["known"][file]["dataloader_share_of_step"]
        assert _of(report, file).data_share == pytest.approx(expected, abs=5e-4)
    bound, unbound = (_of(report, f"resnet50_workers{workers}") for workers in (0, 4))
    assert max(bound.idle_causes, key=bound.idle_causes.__getitem__) == "data_us"
    assert "input-bound" in {finding.code for finding in bound.findings}
    assert "input-bound" not in {finding.code for finding in unbound.findings}


def test_implicit_synchronizations_with_their_cost(report: TraceReport, truth: dict[str, Any]) -> None:
    expected = truth["known"]["owlv2_h100.json.gz"]["implicit_syncs"]
    site = _of(report, "owlv2_h100").syncs[0]
    assert (site.num, site.call, " -> ".join(site.under)) == (
        expected["count"],
        expected["call"],
        expected["under"],
    )
    assert site.implicit
    assert site.total_us / 1000 == pytest.approx(expected["total_ms"], abs=0.05)
    assert site.path is not None


def test_synchronization_inside_a_rocm_copy(report: TraceReport) -> None:
    site = next(site for site in _of(report, "qwen_mi300x").syncs if site.call == "hipMemcpyWithStream")
    assert site.under[-1] == "aten::_local_scalar_dense"
    assert site.num == 1


def test_straggler(shared: Path, truth: dict[str, Any]) -> None:
    known = truth["known"]["dlrm_8ranks_v100.tar.gz"]
    report = analyze(shared / "dlrm_8ranks_v100.tar.gz", jobs=1)
    assert report.ranks is not None
    assert report.ranks.stragglers[0].rank == known["straggler_rank"]
    assert report.ranks.num_unmatched == 0
    overlaps = [
        round(100 * a.device.overlap_us / a.device.communication_us, 2)
        for a in report.traces
        if a.device is not None
    ]
    assert overlaps == known["overlap_percent_by_rank"]


@pytest.mark.parametrize("model", ["alexnet", "simple_add"])
def test_critical_paths(shared: Path, truth: dict[str, Any], model: str) -> None:
    file = f"critical_path_{model}_a100.json.gz"
    path = critical_path(
        link_trace(read_trace(shared / file)), "[param|pytorch.model.alex_net|0|0|0|measure|forward]"
    )
    assert isinstance(path, CriticalPath)
    assert path.total_us == truth["known"][file]["critical_path_us"]
    assert sum(path.parts_us.values()) == pytest.approx(path.total_us)


def test_files_without_device_or_rank_say_so(report: TraceReport) -> None:
    for file in ("cpu_only", "no_rank", "no_distributed_info"):
        analysis = _of(report, file)
        assert analysis.device is None
        assert "no-device-events" in {note.code for note in analysis.health}
    assert _of(report, "cpu_only").rank == 34
    assert _of(report, "no_rank").rank is None
    assert "no-operators" in {note.code for note in _of(report, "gpu_only").health}


def test_collectives_carry_their_names(shared: Path) -> None:
    trace = read_trace(shared / "nccl_a100.json.gz")
    collectives = trace.device.collective[trace.device.collective >= 0]
    assert {trace.names[index] for index in collectives.tolist()} == {"allreduce", "broadcast"}
