# Two commands do all the set-up on a fresh machine: `make demo` and `make test`.

PYTHON ?= python3
VENV ?= .venv
# Exactly this version, asked for first: any other way of asking for torch may pull gigabytes of CUDA packages.
TORCH ?= torch==2.13.0
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo test slow gpu check format docs clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.base ## tune the shipped example; sets everything up
	$(BIN)/hotloop demo --budget 4m

test: $(VENV)/.test check ## static checks and the everyday tests; sets everything up
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow and not gpu"

slow: $(VENV)/.test ## the end-to-end tests, one after the other
	$(BIN)/python -m pytest -m "slow and not gpu"

gpu: $(VENV)/.test ## the tests that need an accelerator
	$(BIN)/python -m pytest -m gpu

check: $(VENV)/.test ## ruff, mypy and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.test ## format the code and apply safe fixes
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

docs: $(VENV)/.base ## write the generated pages of the manual anew
	$(BIN)/python -m hotloop.lint.manual docs/lint.md
	$(BIN)/python -m hotloop.diagnose.manual docs/diagnose.md
	$(BIN)/python -m hotloop.optimize.pages docs/optimizations.md

clean: ## remove the environment and caches
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
