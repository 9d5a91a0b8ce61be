"""Every sample is decoded again in every epoch.

## What it does
Finds image and audio decoding in a data set's `__getitem__`: PIL, OpenCV, imageio, scikit-image,
torchvision.io, torchaudio.

## Why it is slow
Decoding a JPEG takes milliseconds of one core; it is the same work in each epoch. A data set that fits in
memory can be kept decoded, the fixed part of the transforms can be kept on disk, and faster decoders exist.

## When it is fine
The decoded set does not fit, and the workers keep up with the device: this is how ImageNet is read.

## Example
```python
def __getitem__(self, i):
    return self.transform(Image.open(self.paths[i]))
```
Use instead:
```python
def __getitem__(self, i):
    return self.transform(self.images[i])      # decoded once, uint8
```

## References
- [PyTorch, Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.datasets import in_getitem
from hotloop.lint.infer.program import Program
from hotloop.lint.name_lists import words
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity

_DECODERS = words(
    """
    PIL.Image.open cv2.imread cv2.imdecode imageio.imread imageio.v2.imread imageio.v3.imread
    skimage.io.imread matplotlib.pyplot.imread torchvision.io.read_image torchvision.io.decode_jpeg
    torchvision.io.decode_image torchvision.datasets.folder.default_loader torchaudio.load librosa.load
    soundfile.read
    """
)


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find decoders in `__getitem__`."""
    full = program.names.call(call)
    if full in _DECODERS and in_getitem(program, call):
        yield Hit(call, f"{full} runs for each sample of each epoch")


rule = Rule(
    code="decode-each-epoch",
    title="Samples are decoded anew in each epoch",
    severity=Severity.INFO,
    advice="Keep the decoded samples in memory if they fit, or cache the fixed part of the transforms.",
    holds_its_cost=True,
    page=__doc__,
    words=("__getitem__",),
    visits=(Visit(cst.Call, check),),
)
