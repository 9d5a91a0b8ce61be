"""The library calls that open, read, decode and transform samples, as the loading instrument knows them.

A transform of the program's own needs no entry: it is found in its data set.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple


class LoadingCall(NamedTuple):
    """One call of a library."""

    module: str
    owner: str
    """A class in the module; empty: the module itself."""
    name: str
    kind: str
    """`open`, `read`, `decode` or `library`: a transform, unless a transform calls it."""

    @property
    def says(self) -> str:
        """As a reader names it: `PIL.ImageFile.load`, where module and class have one name."""
        owner = "" if self.module.endswith(f".{self.owner}") else self.owner
        return ".".join(part for part in (self.module, owner, self.name) if part)

    def place(self) -> Any:
        """Return what has it as an attribute; None: the program has not imported it."""
        module = sys.modules.get(self.module)
        return getattr(module, self.owner, None) if self.owner else module


_FUNCTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "builtins": {"open": ("open",)},
    "io": {"open": ("open",)},
    "linecache": {"read": ("getline", "getlines")},
    "pickle": {"decode": ("load", "loads")},
    "json": {"decode": ("load", "loads")},
    "tarfile": {"open": ("open",)},
    "wave": {"open": ("open",)},
    "numpy": {"read": ("load", "fromfile", "loadtxt", "genfromtxt")},
    "torch": {"read": ("load",)},
    "pandas": {"read": ("read_csv", "read_parquet", "read_json", "read_pickle")},
    "pyarrow.parquet": {"read": ("read_table",)},
    "PIL.Image": {"open": ("open",)},
    "cv2": {
        "decode": ("imread", "imdecode"),
        "library": ("resize", "cvtColor", "warpAffine", "GaussianBlur"),
    },
    "imageio": {"decode": ("imread",)},
    "imageio.v2": {"decode": ("imread",)},
    "imageio.v3": {"decode": ("imread",)},
    "skimage.io": {"decode": ("imread",)},
    "torchvision.io": {
        "read": ("read_file",),
        "decode": ("read_image", "decode_image", "decode_jpeg", "decode_png", "read_video"),
    },
    "soundfile": {"decode": ("read",)},
    "torchaudio": {"decode": ("load",)},
    "librosa": {"decode": ("load",)},
    "scipy.io": {"read": ("loadmat",)},
    "scipy.io.wavfile": {"decode": ("read",)},
    "nibabel": {"open": ("load",)},
    "pydicom": {"decode": ("dcmread",)},
    "xml.etree.ElementTree": {"decode": ("parse", "fromstring")},
}
_METHODS = (
    ("PIL.ImageFile", "ImageFile", "load", "decode"),
    ("PIL.Image", "Image", "convert", "decode"),
    *(
        ("PIL.Image", "Image", name, "library")
        for name in ("resize", "crop", "rotate", "transpose", "filter", "transform")
    ),
    ("h5py", "Dataset", "__getitem__", "read"),
    ("h5py", "File", "__init__", "open"),
    ("zipfile", "ZipFile", "open", "open"),
    ("zipfile", "ZipFile", "read", "read"),
    ("tarfile", "TarFile", "extractfile", "read"),
    ("gzip", "GzipFile", "read", "decode"),
    ("wave", "Wave_read", "readframes", "read"),
    ("torchcodec.decoders", "VideoDecoder", "__getitem__", "decode"),
    ("torchcodec.decoders", "VideoDecoder", "get_frames_at", "decode"),
    ("transformers.tokenization_utils_base", "PreTrainedTokenizerBase", "__call__", "library"),
)


def loading_calls() -> Iterator[LoadingCall]:
    """Yield the calls of the libraries that the program has imported."""
    for module, kinds in _FUNCTIONS.items():
        for kind, names in kinds.items():
            yield from (LoadingCall(module, "", name, kind) for name in names if module in sys.modules)
    for method in _METHODS:
        if method[0] in sys.modules:
            yield LoadingCall(*method)
