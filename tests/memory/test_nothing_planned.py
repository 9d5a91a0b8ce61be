"""What is said of a program that failed on the virtual GPU."""

from __future__ import annotations

from hotloop.memory.nothing_planned import how_it_failed

LOG = """
[rank0]: Traceback (most recent call last):
[rank0]:   File "/home/me/train.py", line 22, in <module>
[rank0]:   File "/env/lib/python3.11/site-packages/torch/optim/adam.py", line 3, in step
[rank0]: RuntimeError: no
Traceback (most recent call last):
  File "/env/bin/torchrun", line 8, in <module>
    sys.exit(main())
"""


def test_the_place_is_the_users_own_and_not_the_launchers() -> None:
    assert how_it_failed(LOG, 1).startswith(" in train.py:22")
