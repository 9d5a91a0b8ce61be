"""The case studies: their table by a stand-in for the comparisons, and their programs with every option on."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "case_studies"
STUDY = importlib.import_module("examples.case_studies.study")
PROGRAMS = {
    "image_classification.py": ("--depth", "50", "--amp", "--channels-last", "--checkpoint", "--steps", "2"),
    "volumetric_unet.py": (
        "--amp",
        "--channels-last",
        "--checkpoint",
        "--one-cycle",
        "9",
        "--until-loss",
        "9",
    ),
    "llama_memory.py": (
        *(
            "--layers",
            "2",
            "--width",
            "64",
            "--heads",
            "4",
            "--inner",
            "128",
            "--words",
            "100",
            "--length",
            "16",
        ),
        *("--checkpoint", "--autocast", "--math", "--adapters", "2", "--accumulate", "2", "--device", "cpu"),
    ),
    "text_generation.py": ("--cache", "--half", "--inference-mode", "--steps", "2"),
}


def compared(ratios: dict[str, tuple[float, float, float]]) -> Any:
    """Return what stands for `hotloop compare`: the ratio of the options that the second command has more."""

    def compare(before: Sequence[str], after: Sequence[str], **_: Any) -> dict[str, Any]:
        found = 1.0
        low = high = 1.0
        for option in after[len(before) :]:
            if option in ratios:
                found, low, high = (
                    found * ratios[option][0],
                    low * ratios[option][1],
                    high * ratios[option][2],
                )
        side = {"step_s": 0.1, "peak_bytes": 1 << 30}
        return {
            "before": side,
            "after": side,
            "ratio": {"ratio": found, "low": low, "high": high},
            "reason": "",
        }

    return compare


def test_only_what_is_proven_goes_into_the_next_row(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    ratios = {
        "--fast": (1.5, 1.4, 1.6),
        "--slow": (0.8, 0.7, 0.9),
        "--unsure": (1.2, 0.9, 1.5),
        "--twice": (0.7, 0.6, 0.8),
    }
    monkeypatch.setattr(STUDY, "compare", compared(ratios))
    rows = [STUDY.Row(name, (f"--{name}",)) for name in ("fast", "slow", "unsure")]
    rows.append(STUDY.Row("twice", ("--twice",), samples=2.0))
    results, whole, samples = STUDY.waterfall(["python", "train.py"], rows, folder=tmp_path, budget="1s")
    assert [each.kept for each in results] == [True, False, False, True]
    assert [each.verdict for each in results] == ["faster", "slower", "not proven", "faster"]
    STUDY.show("A title", results, whole, samples, ["python", "train.py"])
    shown = capsys.readouterr().out
    assert "slow                                     100.0 ms  0.80x" in shown
    assert "1.40x             [1.20, 1.60]" in shown, "twice the samples in a step that takes longer"
    assert "against the original in fresh processes: 2.10x [1.68, 2.56]" in shown


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_runs_with_every_option(program: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(FOLDER / program), *PROGRAMS[program]],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
