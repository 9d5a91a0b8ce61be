"""A whole model is saved."""

from __future__ import annotations

from typing import Any

import torch
from program import FOLDER, trained


def case() -> Any:
    model = trained()
    torch.save(model, FOLDER / "whole.pt")
    torch.save(model.state_dict(), FOLDER / "state.pt")
    return [
        sorted(model.state_dict()),
        [name for name, _ in model.named_children()],
        "forward" in model.__dict__,
    ]
