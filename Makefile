# Two commands do all the set-up on a fresh machine: `make demo` and `make test`.

PYTHON ?= python3
VENV ?= .venv
# Exactly this version, asked for first: any other way of asking for torch may pull gigabytes of CUDA packages.
TORCH ?= torch==2.13.0
BIN := $(VENV)/bin

.PHONY: demo test slow gpu check format docs clean

demo: $(VENV)/.base
	$(BIN)/hotloop demo --budget 4m

test: $(VENV)/.test check
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow and not gpu"

slow: $(VENV)/.test
	$(BIN)/python -m pytest -m "slow and not gpu"

gpu: $(VENV)/.test
	$(BIN)/python -m pytest -m gpu

check: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

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

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
