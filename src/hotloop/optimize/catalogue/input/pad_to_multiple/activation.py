"""The activation of pad_to_multiple: integer tensors of a batch get a length that is a multiple."""

from __future__ import annotations

from typing import Any

from hotloop.probe.activation.activation import Activation

MAX_DEPTH = 3


class PaddedBatches(Activation):
    """Pads tokens, labels and masks, with the value that pads them.

    Args:
        multiple: of the length.
    """

    def __init__(self, multiple: int) -> None:
        self._multiple = multiple
        self._values: dict[str, int] = {}
        self._num_padded = 0
        self._reason = "no batch held integer tensors of samples x length"

    def on_batch(self, batch: Any) -> Any:
        """Return the batch with its sequences padded; as it is where it is not known with what."""
        import torch

        if not torch.is_grad_enabled():
            return batch
        sequences = dict(_sequences(batch, "", MAX_DEPTH))
        shapes = {tuple(one.shape) for one in sequences.values()}
        if len(shapes) != 1:
            return batch
        for place, one in sequences.items():
            self._learn(place, one)
        length = next(iter(shapes))[1]
        added = -length % self._multiple
        if sequences.keys() - self._values.keys():
            self._reason = "no batch has shown with what it is padded"
            return batch
        self._num_padded += added > 0
        return self._padded(batch, "", added) if added else batch

    def _learn(self, place: str, rows: Any) -> None:
        """A row that ends with one number twice, where another row ends otherwise, is padded with it."""
        if place in self._values or rows.shape[1] < 2:
            return
        twice = rows[:, -1] == rows[:, -2]
        ends = rows[:, -1]
        if bool(twice.any()) and not bool(twice.all()) and len(set(ends[twice].tolist())) == 1:
            self._values[place] = int(ends[twice][0])

    def _padded(self, value: Any, place: str, added: int) -> Any:
        import torch

        if place in self._values and isinstance(value, torch.Tensor):
            return torch.nn.functional.pad(value, (0, added), value=self._values[place])
        if isinstance(value, dict):
            return type(value)(
                {key: self._padded(part, f"{place}.{key}", added) for key, part in value.items()}
            )
        if type(value) in {tuple, list}:
            return type(value)(self._padded(part, f"{place}.{at}", added) for at, part in enumerate(value))
        return value

    def effect(self) -> tuple[bool, str]:
        """Return whether batches were padded."""
        if not self._num_padded:
            return False, self._reason
        return True, f"{self._num_padded} batches were padded to a multiple of {self._multiple}"


def _sequences(value: Any, place: str, depth: int) -> list[tuple[str, Any]]:
    """Return the integer and boolean tensors of two dimensions, by where they stand in the batch."""
    import torch

    if isinstance(value, torch.Tensor):
        plain = value.dim() == 2 and not value.is_floating_point() and not value.is_complex()
        return [(place, value)] if plain else []
    parts: list[tuple[Any, Any]] = []
    if depth and isinstance(value, dict):
        parts = list(value.items())
    elif depth and type(value) in {tuple, list}:
        parts = list(enumerate(value))
    return [found for key, part in parts for found in _sequences(part, f"{place}.{key}", depth - 1)]
