"""A piece of a program whose model calls NumPy in its forward."""

from typing import Any

import numpy as np


def hook(values: Any, output: Any) -> Any:
    return np.concatenate([values, output.detach().numpy()])
