"""Training scripts of other people, run whole with and without us.

The scripts are not here: `corpus.py` names repository, commit and script of each, and `data.py` makes small data for
them. Bring the sources once, then compare:

    python -m benchmarks.published fetch --sources DIR             # git, from github.com, at the commits named
    python -m benchmarks.published compare --sources DIR [--site DIR] [--only NAME...] [--ways alone observe run]
    python -m benchmarks.published page                            # of the rows in published.jsonl

`--site` is a folder of packages that the scripts need beside ours, put on their PYTHONPATH:

    pip install --no-deps --target DIR torchvision timm pytorch-ignite monai gymnasium ...

(`packages` of an entry says which; `--no-deps` keeps torch as it is). An entry whose sources or packages are not there
is shown as absent.
"""
