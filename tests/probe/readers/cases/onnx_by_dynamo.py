"""torch.onnx.export, read by Dynamo; without onnxscript it says so, with us as without."""

from __future__ import annotations

from typing import Any

import torch
from program import Found
from torch import nn


def read(model: nn.Module, inputs: Any) -> Found:
    exported = torch.onnx.export(model, (inputs,), dynamo=True, verbose=False)
    return [node.op_type for node in exported.model.graph], None
