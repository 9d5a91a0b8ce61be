"""What `hotloop report` writes for other tools, read back with those tools' own readers where there are some."""

from __future__ import annotations

import contextlib
import csv
import json
from pathlib import Path

import numpy as np
import pytest

from hotloop.cli.app import run
from hotloop.store.session import new_session

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
    return tmp_path


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
    assert len(blocks) == 7 * 16, "seven measured trials of two pairs with eight blocks"


def test_a_trace_for_perfetto_has_every_step(folder: Path) -> None:
    assert run(["report", "--perfetto", "t.json"]) == 0
    events = json.loads((folder / "t.json").read_text())["traceEvents"]
    steps = [event for event in events if event["name"].startswith("ProfilerStep#")]
    assert [event["dur"] for event in steps] == pytest.approx([1e6 * one for one in _durations()], abs=1e-2)
    assert {event["ph"] for event in events} == {"M", "X", "C"}


def test_tensorboard_reads_the_scalars(folder: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    assert run(["report", "--tensorboard", "tb"]) == 0
    seen = accumulator.EventAccumulator(str(folder / "tb"), size_guidance={"scalars": 0})
    seen.Reload()
    values = [one.value for one in seen.Scalars("step_s/rank_0")]
    assert values == pytest.approx(_durations()[:NUM_STEPS])
    assert "phases/backward_s/rank_1" in seen.Tags()["scalars"]
    assert (folder / "tb" / "s.pt.trace.json").exists()


def test_host_samples_for_speedscope(folder: Path) -> None:
    assert run(["report", "--speedscope", "s.json"]) == 0
    assert json.loads((folder / "s.json").read_text())["profiles"][0]["type"] == "sampled"


def test_a_place_that_cannot_be_written_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "file").write_text("")
    assert run(["report", "--csv", "file"]) in {2, 4}
    assert "file" in capsys.readouterr().err
