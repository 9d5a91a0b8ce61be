"""Each sample opens a file of its own.

## What it does
Finds file reading in a data set's `__getitem__`: `h5py.File`, `pandas.read_csv`, `numpy.load`, `torch.load`,
`open`, `json.load`, `pickle.load`. Opening an HDF5 file or parsing a whole table for one sample is a warning;
one small file per sample is information.

## Why it is slow
Opening costs a round trip to the file system, on network storage milliseconds; many small random reads reach
a few per cent of a disk's sequential rate. A container opened for each sample parses its index each time.

## When it is fine
The files are in the page cache and decoding them costs much more than opening.

## Example
```python
def __getitem__(self, i):
    with h5py.File(self.path) as f:
        return f["x"][i]
```
Use instead:
```python
def __getitem__(self, i):
    if self.file is None:                  # once per worker
        self.file = h5py.File(self.path)
    return self.file["x"][i]
```

## References
- [WebDataset](https://github.com/webdataset/webdataset)
- [PyTorch, torch.utils.data](https://docs.pytorch.org/docs/stable/data.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.datasets import in_getitem
from hotloop.lint.infer.program import Program
from hotloop.lint.name_lists import words
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity

_WHOLE_TABLE = words(
    """
    h5py.File pandas.read_csv pandas.read_parquet pandas.read_pickle lmdb.open
    """
)
_SMALL_FILE = words(
    """
    numpy.load torch.load pickle.load json.load scipy.io.loadmat nibabel.load
    """
)


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find file reads in `__getitem__`."""
    full = program.names.call(call)
    if full not in _WHOLE_TABLE | _SMALL_FILE or not in_getitem(program, call):
        return
    if program.file.enclosing(call, cst.If) is not None:
        return  # opened once and kept, or a cache
    severity = Severity.WARNING if full in _WHOLE_TABLE else Severity.INFO
    yield Hit(call, f"{full} runs for each sample", severity)


rule = Rule(
    code="file-read-per-sample",
    title="A file is opened for every sample",
    severity=Severity.WARNING,
    advice="Open containers once per worker; pack small files into shards that are read in sequence.",
    holds_its_cost=True,
    page=__doc__,
    words=("__getitem__",),
    visits=(Visit(cst.Call, check),),
)
