# Two commands do everything on a machine that has Python >= 3.11 and make:
#   make demo    optimise a function of 300 variables
#   make test    run the tests
# Both make their own .venv from constraints.txt, which pins the versions that repeatable numbers depend on.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.PHONY: demo test lint types layers check bars speed golden clean

demo: .stamp/core
	$(BIN)/mctsvs run Hartmann6_300 --method mcts-vs-bo --budget 300 --seed 2021

test: .stamp/test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 $(ARGS)

lint: .stamp/dev
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks

types: .stamp/dev
	$(BIN)/mypy

layers: .stamp/dev
	$(BIN)/lint-imports

check: test lint types layers

# the measurements behind the tables in docs/results (long)
bars: .stamp/test
	$(BIN)/python benchmarks/bars.py

speed: .stamp/test
	$(BIN)/python benchmarks/speed.py all

$(VENV):
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "mctsvs needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

.stamp/core: pyproject.toml constraints.txt | $(VENV)
	$(PIP) --editable .
	@mkdir -p .stamp && touch $@

.stamp/test: pyproject.toml constraints.txt | $(VENV)
	$(PIP) --editable '.[test]'
	@mkdir -p .stamp && touch $@ .stamp/core

.stamp/dev: pyproject.toml constraints.txt | $(VENV)
	$(PIP) --editable '.[dev]'
	@mkdir -p .stamp && touch $@ .stamp/test .stamp/core

clean:
	rm -rf $(VENV) .stamp build dist src/*.egg-info

# the only way golden traces change; commit the file with the change that caused it
golden: .stamp/test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/test_golden.py --write
