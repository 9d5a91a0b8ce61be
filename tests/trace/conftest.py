"""Fixtures of the trace tests: the published traces, where a checkout has them, and a small one made here."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.trace.example import example_trace

SHARED = Path(__file__).resolve().parents[3] / "shared" / "traces"


@pytest.fixture(scope="session")
def shared() -> Path:
    if not (SHARED / "truth.json").exists():
        pytest.skip(f"the published traces are not here ({SHARED})")
    return SHARED


@pytest.fixture(scope="session")
def truth(shared: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((shared / "truth.json").read_text())
    return loaded


@pytest.fixture
def small_trace(tmp_path: Path) -> Path:
    path = tmp_path / "small.json"
    path.write_text(json.dumps(example_trace()))
    return path
