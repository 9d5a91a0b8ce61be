# Two commands do all the set-up on a fresh machine: `make demo` and `make test`.

PYTHON ?= python3
VENV ?= .venv
# Exactly this version, asked for first: any other way of asking for torch may pull gigabytes of CUDA packages.
TORCH ?= torch==2.13.0
BIN := $(VENV)/bin
PART ?= all
GPU_PYTHON ?= python3
WHEELS ?= wheels

.DEFAULT_GOAL := help
.PHONY: help demo case-study test slow slow-again attack acceptance gpu gpu-tests wheels check format docs screens clean
# What the checks look at: a program of yours that lies in this folder is none of theirs.
CODE := src tests benchmarks
# Caches lie beside the environment, so that the tree may be one that cannot be written to.
export RUFF_CACHE_DIR := $(abspath $(VENV))/.ruff_cache
export MYPY_CACHE_DIR := $(abspath $(VENV))/.mypy_cache
PYTEST := $(BIN)/python -m pytest -o cache_dir=$(abspath $(VENV))/.pytest_cache
BUDGET ?= 4m
N ?= 1
# Of all tests only these, where they are named: make test TESTS=tests/cli
TESTS ?=

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.base ## tune the shipped example; sets everything up
	$(BIN)/hotloop demo --budget $(BUDGET)

case-study: $(VENV)/.base ## a published claim tried on a shipped program; N=1, 2, 3 or 6
	$(BIN)/python -m examples.case_studies $(N) --budget $(BUDGET)

test: $(VENV)/.test check ## static checks and the everyday tests; sets everything up
	$(PYTEST) -n auto --dist loadfile -m "not slow and not gpu" $(TESTS)

slow: $(VENV)/.test ## the end-to-end tests, three at a time
	$(PYTEST) -n 3 --dist loadfile -m "slow and not gpu and not attack"

slow-again: $(VENV)/.test ## of the end-to-end tests those that failed
	$(PYTEST) --last-failed --last-failed-no-failures none -m "slow and not gpu and not attack"

attack: $(VENV)/.test ## hostile files, users and programs by the hundred; a table of counts in benchmarks/results
	$(BIN)/python -m benchmarks.attack

acceptance: $(VENV)/.test ## figures beside the truth taken another way, on the CPU; PART=name for one
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.acceptance --device cpu --part $(PART) --write

# On a machine with a GPU: its own Python and torch (2.6 or newer), no network; wheels/ is brought along.
gpu: ## the acceptance on a GPU, with the machine's own torch; PART=1 to 11 or a name, each under six minutes
	$(GPU_PYTHON) benchmarks/acceptance/prepare.py $(WHEELS) .gpu-packages
	PYTHONPATH=$(CURDIR)/src:$(CURDIR)/.gpu-packages $(GPU_PYTHON) -m benchmarks.acceptance --device cuda --part $(PART) --write

gpu-tests: $(VENV)/.test ## the tests that need an accelerator
	$(PYTEST) -m gpu

wheels: ## what a GPU machine without a network needs beside its torch; for the Python that runs this
	$(PYTHON) -m pip wheel -q -w $(WHEELS) .

check: $(VENV)/.test ## ruff, mypy and the import contracts
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy
	$(BIN)/lint-imports --cache-dir $(abspath $(VENV))/.import_linter_cache

format: $(VENV)/.test ## format the code and apply safe fixes
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip

$(VENV)/.base: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -c "import torch" 2>/dev/null || $(BIN)/python -m pip install -q $(TORCH)
	$(BIN)/python -m pip install -q -e . pillow
	touch $@

$(VENV)/.test: $(VENV)/.base
	$(BIN)/python -m pip install -q -e ".[test]"
	touch $@

docs: $(VENV)/.base ## write the generated pages of the manual anew
	$(BIN)/python -m hotloop.lint.manual docs/lint.md
	$(BIN)/python -m hotloop.diagnose.manual docs/diagnose.md
	$(BIN)/python -m hotloop.optimize.pages docs/optimizations.md

screens: $(VENV)/.base ## put real screens into the README; needs a quiet machine
	$(BIN)/python benchmarks/readme_screens.py

clean: ## remove the environment and caches
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
