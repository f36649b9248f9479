PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: help demo test coverage lint format docs bench faults clean

help:  ## List the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

# torch first: the exact pin decides which build is taken, and nothing after it may replace it.
$(VENV)/.installed: pyproject.toml bench/pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]' --editable './bench[dev]'
	@touch $@

demo: $(VENV)/.installed  ## Explain members of the karate club and write a report
	$(BIN)/python -m gflowexplainer demo

PYTEST = OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist loadfile

test: $(VENV)/.installed  ## Run the tests
	$(PYTEST)

coverage: $(VENV)/.installed  ## Run the tests with a coverage report, which takes longer
	$(PYTEST) --cov --cov-report=term

lint: $(VENV)/.installed  ## Check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.installed  ## Rewrite the code in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.installed  ## Build the documentation into build/site; no warning is let pass
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(VENV)/.installed  ## Measure speed and exactness; results go to results/bench
	$(BIN)/python -m benchmarks

faults: $(VENV)/.installed  ## Kill, damage, overfill and misuse; counts what survived, was refused, unclear or wrong
	OMP_NUM_THREADS=1 $(BIN)/python -W ignore -m faults

clean:  ## Remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .coverage
