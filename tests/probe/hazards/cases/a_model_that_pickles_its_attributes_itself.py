"""A model gives all its attributes to pickle."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import torch
from program import Net, train


class Stubborn(Net):
    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)


def case() -> Any:
    model = Stubborn()
    train(model, 4)
    return [type(pickle.loads(pickle.dumps(model))).__name__, copy.deepcopy(model)(torch.ones(1, 8)).shape[1]]
