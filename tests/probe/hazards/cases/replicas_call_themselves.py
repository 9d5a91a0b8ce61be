"""A replica's own forward is called, not the root's."""

from __future__ import annotations

from typing import Any

import torch
from program import trained


def case() -> Any:
    model = trained()
    replica = model._replicate_for_data_parallel()
    replica.forward = lambda inputs: "the replica"
    return str(replica(torch.ones(1, 8)))
