"""Notebooks are read cell by cell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hotloop.lint.check.config import LintConfig
from hotloop.lint.check.run import lint_files
from hotloop.lint.read.discover import python_files
from hotloop.lint.read.judge import MAX_BYTES

CELLS = [
    ("markdown", "# A model"),
    ("code", "%matplotlib inline\n!pip install torch\nfiles = !ls\nimport torch\n"),
    ("code", ["import torch\n", "torch.autograd.set_detect_anomaly(True)"]),
    ("code", "%%bash\nls -l\n"),
    ("code", "%%time\nif torch.cuda.is_available():\n    %timeit torch.zeros(1)\n?torch.nn\n"),
]


def _write(path: Path, cells: object) -> str:
    path.write_text(json.dumps({"cells": cells, "nbformat": 4}))
    return str(path)


def test_a_finding_stands_at_a_line_of_its_cell(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.ipynb", [{"cell_type": kind, "source": text} for kind, text in CELLS])
    assert python_files([str(tmp_path)], ()) == [path]
    (finding,) = lint_files([path], LintConfig()).findings
    assert (finding.code, finding.path, finding.line) == ("anomaly-mode-on", f"{path}:cell 3", 2)


@pytest.mark.parametrize("cells", ["none", [{"source": "x"}], [{"cell_type": "code", "source": 3}]])
def test_what_is_no_notebook_is_said(tmp_path: Path, cells: object) -> None:
    (finding,) = lint_files([_write(tmp_path / "a.ipynb", cells)], LintConfig()).findings
    assert finding.code == "unreadable-file"


def test_pictures_of_the_output_do_not_count(tmp_path: Path) -> None:
    drawn = [{"output_type": "display_data", "data": {"image/png": "x" * MAX_BYTES}}]
    cell = {"cell_type": "code", "source": CELLS[2][1], "outputs": drawn}
    (finding,) = lint_files([_write(tmp_path / "a.ipynb", [cell])], LintConfig()).findings
    assert finding.code == "anomaly-mode-on"


def test_the_code_counts(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.ipynb", [{"cell_type": "code", "source": "#" * (MAX_BYTES + 1)}])
    (finding,) = lint_files([path], LintConfig()).findings
    assert finding.code == "unreadable-file"
