"""The loader decodes and collates in the training process.

## What it does
Finds a `DataLoader` for training (it shuffles or samples) whose `num_workers` is absent or 0, and Hugging
Face `TrainingArguments` without `dataloader_num_workers` (as information).

## Why it is slow
With no workers each batch is read, decoded, augmented and collated between two steps, while the device waits.
Workers do that during the step.

## When it is fine
The samples are already tensors in memory, so that collating costs less than passing a batch between
processes; the rule says nothing for a `TensorDataset`, for subsets of one, and for a dataset of the same file
whose `__getitem__` only indexes. On very few cores workers may be slower: `hotloop tune` measures that.

## Example
```python
loader = DataLoader(dataset, batch_size=64, shuffle=True)
```
Use instead:
```python
loader = DataLoader(dataset, batch_size=64, shuffle=True, num_workers=4)
```

## References
- [PyTorch, Single- and Multi-process Data Loading](https://docs.pytorch.org/docs/stable/data.html)
- [PyTorch, Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.datasets import gives_device_tensors, is_cheap_dataset
from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import argument, has_star, is_literal, keyword
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity

_ARGUMENTS = frozenset({"transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments"})


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find loaders without workers."""
    full = program.names.call(call)
    if has_star(call):
        return
    if full == "torch.utils.data.DataLoader":
        yield from _loader(program, call)
    elif full in _ARGUMENTS and keyword(call, "dataloader_num_workers") is None:
        yield Hit(call, "dataloader_num_workers is not given, so it is 0", Severity.INFO)


def _loader(program: Program, call: cst.Call) -> Iterator[Hit]:
    workers = argument(call, 5, "num_workers")
    if workers is not None and not is_literal(workers, "0"):
        return
    dataset = argument(call, 0, "dataset")
    if not program.is_training_loader(call) or (dataset is not None and is_cheap_dataset(program, dataset)):
        return
    if gives_device_tensors(program, call):
        return
    yield Hit(call, "num_workers is 0" if workers is not None else "num_workers is not given, so it is 0")


rule = Rule(
    code="loader-in-training-process",
    title="The data loader works in the training process",
    severity=Severity.WARNING,
    advice="Give num_workers; the right number is the smallest that keeps the device busy.",
    optimization="loader_workers",
    page=__doc__,
    words=("DataLoader", "TrainingArguments"),
    visits=(Visit(cst.Call, check),),
)
