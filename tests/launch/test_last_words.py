"""Why a program ended."""

from __future__ import annotations

import pytest

from hotloop.launch.log_tail import last_words

BAR = "Epoch [1/14]: [15/16]  94%|█████  , loss=0.31 [00:00<00:00]\r" + " " * 80


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("", ""),
        ("\n  \n", ""),
        ("step 1\nstep 2\n", "step 2"),
        ("RuntimeError: view size\n" + BAR + "\n", "RuntimeError: view size"),
        (
            "  raise x\ntorch.cuda.OutOfMemoryError: no memory\n[rank 0] exits\n",
            "torch.cuda.OutOfMemoryError: no memory",
        ),
        ("AssertionError\n", "AssertionError"),
        (
            "[rank1]: Traceback (most recent call last):\n[rank1]: ValueError: odd\nTraceback:\n"
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n====\n",
            "ValueError: odd",
        ),
        ("ValueError: one\n\nDuring handling\n\nKeyError:   'two'\n", "KeyError: 'two'"),
        ("Errors so far: 3\n", "Errors so far: 3"),
    ],
)
def test_the_exception_counts_not_what_was_printed_after_it(output: str, said: str) -> None:
    assert last_words(output) == said
