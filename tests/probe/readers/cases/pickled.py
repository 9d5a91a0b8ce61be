"""Pickles and weights."""

from __future__ import annotations

import io
import pickle
import pickletools
from typing import Any

import torch
from program import ROOT, Found
from torch import nn


def read(model: nn.Module, inputs: Any) -> Found:
    raw = pickle.dumps(model.net if ROOT == "lightning" else model)
    strings = sorted({str(value) for _, value, _ in pickletools.genops(raw) if isinstance(value, str)})
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    buffer.seek(0)
    return [strings, sorted(torch.load(buffer, weights_only=True))], None
