"""What `hotloop report` writes for other tools, read back with those tools' own readers where there are some."""

from __future__ import annotations

import contextlib
import csv
import json
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from hotloop.cli.app import run
from hotloop.model.optimization import Candidate
from hotloop.model.tuning import Contention
from hotloop.store.session import new_session
from hotloop.tune.executor import ArmRecord, RanSet, SetOrder, SetRecord

from ..report.rich_session import content

NUM_STEPS, NUM_RANKS = 50, 2


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One stored session of two ranks."""
    monkeypatch.chdir(tmp_path)
    said = content(NUM_STEPS, NUM_RANKS)
    with contextlib.closing(new_session(tmp_path, "s")) as session:
        session.put("observation", said.observation)
        session.put("result", said.tuning)
        session.put("origin", said.origin)
        session.put("confirm|x|0", _confirmed())
    return tmp_path


def _confirmed() -> RanSet:
    """The plan beside the original; its losses are told, too."""
    result = content(NUM_STEPS).tuning
    assert result is not None
    plan = tuple(Candidate(name=step.name, params=step.params) for step in result.plan.steps)
    arms = tuple(ArmRecord(step_s=0.1, losses=(2.0, 1.5, 1.2)) for _ in range(2))
    record = SetRecord(rounds=((0.2, 0.1),), arms=arms, contention=Contention(num_blocks=2, num_void=0))
    return RanSet(order=SetOrder(plans=((), plan), max_rounds=1), record=record)


def _durations() -> list[float]:
    said = content(NUM_STEPS, NUM_RANKS)
    assert said.observation is not None
    series = said.observation.series
    return [value for one in series for value in np.frombuffer(one.duration_s, "<f4").tolist()]


def test_raw_samples_as_csv_and_parquet_are_all_there_and_the_same(folder: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert run(["report", "--csv", "raw", "--parquet", "raw"]) == 0
    rows = list(csv.DictReader((folder / "raw" / "steps.csv").open()))
    table = parquet.read_table(folder / "raw" / "steps.parquet").to_pydict()
    assert [float(row["duration_s"]) for row in rows] == pytest.approx(_durations())
    assert table["duration_s"] == _durations()
    assert table["kind"][:9] == ["warm_up"] * 8 + ["steady"]
    blocks = list(csv.DictReader((folder / "raw" / "blocks.csv").open()))
    assert len(blocks) == 6 * 16 + 1, (
        "six measured trials of two pairs with eight blocks, and the confirmation"
    )
    monitors = list(csv.DictReader((folder / "raw" / "monitors.csv").open()))
    assert float(monitors[3]["time_s"]) == 1.5
    assert {"cpu_busy_ratio", "program_memory_bytes"} < monitors[3].keys()


def test_the_trace_has_the_categories_that_the_profiler_plug_in_of_tensorboard_goes_by(folder: Path) -> None:
    """As its `profiler/trace.py` has them: what is of another category it leaves out."""
    assert run(["report", "--perfetto", "t.json"]) == 0
    events = json.loads((folder / "t.json").read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    steps = [event for event in spans if event["name"].startswith("ProfilerStep#")]
    assert {event["cat"] for event in steps} == {"user_annotation"}
    assert [event["args"]["kind"] for event in steps[:9]] == ["warm_up"] * 8 + ["steady"]
    lanes = {"cpu_op": "operators", "kernel": "device"}
    assert {event["cat"] for event in spans} == {"user_annotation", *lanes}
    seen = content(NUM_STEPS, NUM_RANKS).observation
    assert seen is not None
    assert seen.deep is not None
    assert seen.deep.operators is not None
    assert seen.deep.operators.timeline is not None
    last = max(event["ts"] + event["dur"] for event in steps if event["pid"] == steps[0]["pid"])
    for category, kind in lanes.items():
        found = [event for event in spans if event["cat"] == category]
        told = [lane for lane in seen.deep.operators.timeline.lanes if lane.kind == kind]
        assert len(found) == sum(len(lane.spans) for lane in told)
        assert min(event["ts"] for event in found) >= last - 1, "beside no step that it is not of"
    assert all(event["pid"] == event["args"]["device"] for event in spans if event["cat"] == "kernel")


def test_the_profiler_plug_in_of_tensorboard_finds_steps_and_operators(folder: Path) -> None:
    data = pytest.importorskip("torch_tb_profiler.profiler.data")
    assert run(["report", "--tensorboard", "tb"]) == 0
    found = data.RunProfileData.parse("s", None, str(folder / "tb" / "s-rank-0.pt.trace.json"), str(folder))
    assert len(found.steps_names) == NUM_STEPS
    assert found.op_list_groupby_name
    assert found.has_kernel


def test_a_trace_for_perfetto_has_every_step(folder: Path) -> None:
    assert run(["report", "--perfetto", "t.json"]) == 0
    events = json.loads((folder / "t.json").read_text())["traceEvents"]
    steps = [event for event in events if event["name"].startswith("ProfilerStep#")]
    assert [event["dur"] for event in steps] == pytest.approx([1e6 * one for one in _durations()], abs=0.1)
    assert {event["ph"] for event in events} == {"M", "X", "C"}


def test_tensorboard_reads_the_scalars(folder: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    assert run(["report", "--tensorboard", "tb"]) == 0
    seen = accumulator.EventAccumulator(str(folder / "tb"), size_guidance={"scalars": 0})
    seen.Reload()
    values = [one.value for one in seen.Scalars("step_s/rank_0")]
    assert values == pytest.approx(_durations()[:NUM_STEPS])
    assert "phases/backward_s/rank_1" in seen.Tags()["scalars"]
    assert len(seen.Scalars("loss/original")) == len(seen.Scalars("loss/plan")) > 0
    of = content().origin
    assert of is not None
    begun = datetime.fromisoformat(of.began).timestamp()
    assert begun < seen.Scalars("step_s/rank_0")[0].wall_time < begun + 60
    assert {file.name for file in (folder / "tb").glob("*.json")} == {
        "s-rank-0.pt.trace.json",
        "s-rank-1.pt.trace.json",
    }


def test_host_samples_for_speedscope(folder: Path) -> None:
    assert run(["report", "--speedscope", "s.json"]) == 0
    assert json.loads((folder / "s.json").read_text())["profiles"][0]["type"] == "sampled"


def test_a_place_that_cannot_be_written_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "file").write_text("")
    assert run(["report", "--csv", "file"]) in {2, 4}
    assert "file" in capsys.readouterr().err
