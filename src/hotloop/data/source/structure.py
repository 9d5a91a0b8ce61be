"""Samples of a Dataset object as bytes and back, exactly: nested tuples, lists and dicts of the usual values.

Tensors and arrays are `.npy`, images `.png` (without loss), numbers and lists of them `.json`, strings `.txt`, bytes
`.bin`.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

from hotloop.model.errors import HotloopError

_EXTENSIONS = {
    "tensor": "npy",
    "array": "npy",
    "image": "png",
    "json": "json",
    "str": "txt",
    "bytes": "bin",
}
_EXACT_IN_PNG = frozenset({"1", "L", "RGB", "RGBA", "I;16"})
Structure = Any
"""A kind of leaf ("tensor"), or `["tuple", [name, structure], ...]`; JSON."""


def structure_of(sample: Any) -> Structure:
    """Return how a sample is put together.

    Raises:
        HotloopError: it holds something that has no exact form as bytes.
    """
    kind = type(sample)
    if kind is list and _is_json(sample):
        return "json"  # token ids, boxes, annotations: of any length, in one field
    if kind in {tuple, list}:
        return [kind.__name__, *([str(at), structure_of(part)] for at, part in enumerate(sample))]
    if kind is dict and all(isinstance(key, str) for key in sample):
        return ["dict", *([key, structure_of(part)] for key, part in sample.items())]
    return _leaf(sample)


def _is_json(value: Any) -> bool:
    """Whether JSON gives the same value back."""
    if type(value) is list:
        return all(map(_is_json, value))
    if type(value) is dict:
        return all(type(key) is str for key in value) and all(map(_is_json, value.values()))
    return value is None or type(value) in {bool, int, float, str}


def _leaf(value: Any) -> str:
    if value is None or type(value) in {bool, int, float}:
        return "json"
    kind = type(value)
    if kind in {str, bytes}:
        return kind.__name__
    if kind.__module__ == "torch" and kind.__name__ == "Tensor" and str(value.layout) == "torch.strided":
        if str(value.dtype) != "torch.bfloat16":
            return "tensor"
    elif kind.__module__ == "numpy" and hasattr(value, "dtype") and not value.dtype.hasobject:
        return "array"
    elif kind.__module__.startswith("PIL.") and value.mode in _EXACT_IN_PNG:
        return "image"
    what = f"{kind.__name__} of mode {value.mode}" if hasattr(value, "mode") else kind.__name__
    raise HotloopError(
        f"a sample holds a {what}, which has no exact form in a shard",
        "return tensors, arrays, RGB or grey images, numbers, strings or bytes, in tuples, lists or dicts",
    )


def fields_of(sample: Any, structure: Structure) -> dict[str, bytes]:
    """Return the leaves of a sample as bytes, by their place in it and their extension: `0.npy`."""
    return {
        f"{place}.{_EXTENSIONS[kind]}": _encoded(kind, leaf)
        for place, kind, leaf in _leaves(sample, structure, "")
    }


def _leaves(sample: Any, structure: Structure, place: str) -> Iterator[tuple[str, str, Any]]:
    if isinstance(structure, str):
        yield place or "sample", structure, sample
        return
    for at, (name, inner) in enumerate(structure[1:]):
        part = sample[name] if structure[0] == "dict" else sample[at]
        yield from _leaves(part, inner, _below(place, name, at))


def _below(place: str, name: str, at: int) -> str:
    """A dot or slash in a key would end the name of the field."""
    word = name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else f"field{at}"
    return f"{place}.{word.lower()}" if place else word.lower()


def put_together(fields: dict[str, bytes], structure: Structure, place: str = "") -> Any:
    """Return the sample that `fields_of` took apart."""
    if isinstance(structure, str):
        return _decoded(structure, fields[f"{place or 'sample'}.{_EXTENSIONS[structure]}"])
    parts = [
        put_together(fields, inner, _below(place, name, at)) for at, (name, inner) in enumerate(structure[1:])
    ]
    if structure[0] == "dict":
        return dict(zip((name for name, _ in structure[1:]), parts, strict=True))
    return tuple(parts) if structure[0] == "tuple" else parts


def _encoded(kind: str, value: Any) -> bytes:
    if kind == "json":
        return json.dumps(value).encode()
    if kind == "str":
        return str(value).encode(errors="surrogatepass")
    if kind == "bytes":
        return bytes(value)
    buffer = io.BytesIO()
    if kind == "image":
        value.save(buffer, "png", compress_level=1)
    else:
        import numpy as np

        array = value.detach().cpu().numpy() if kind == "tensor" else np.asarray(value)
        np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _decoded(kind: str, content: bytes) -> Any:
    if kind == "json":
        return json.loads(content)
    if kind == "str":
        return content.decode(errors="surrogatepass")
    if kind == "bytes":
        return content
    if kind == "image":
        from PIL import Image

        image = Image.open(io.BytesIO(content))
        image.load()
        return image
    import numpy as np

    array = np.load(io.BytesIO(content), allow_pickle=False)
    if kind == "array":
        return array if array.ndim else array[()]
    import torch

    return torch.from_numpy(array)
