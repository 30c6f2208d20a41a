# Two commands do everything on a machine that has Python >= 3.11 and make:
#   make demo    the paper's method and the default on a function of 300 variables, and a report of both
#   make test    run the tests, and say how much of the code they reach
# Contributors also want:
#   make test-fast   the tests of the core, without the extras of the methods, in a minute and a half
#   make check       everything that CI runs
# All make their own .venv from constraints.txt, which pins the versions that repeatable numbers depend on.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.PHONY: demo test test-fast lint types layers docs package check pictures bench speed reproduce golden clean

# Numbers are compared with stored ones in all digits that matter, so tests use one thread and, on any x86 processor, the
# instructions that all of them have.
test test-fast golden pictures: export OPENBLAS_NUM_THREADS = 1
ifeq ($(shell uname -m),x86_64)
test test-fast golden pictures: export OPENBLAS_CORETYPE = Haswell
test test-fast golden pictures: export NPY_DISABLE_CPU_FEATURES = X86_V4 AVX512_ICL AVX512_SPR
endif

FAST := tests/gp tests/space tests/loop tests/study tests/utils tests/methods/mcts_vs tests/test_golden.py tests/test_optimizer.py \
  tests/test_result.py

DEMO := Hartmann6_300 --shuffle --shift --budget 300 --seed 2021

demo: $(VENV)/stamp-demo
	@rm -rf build/demo && mkdir -p build/demo
	@$(BIN)/mctsvs bench run $(DEMO) --method mcts-vs --study build/demo/paper.db
	@echo
	@$(BIN)/mctsvs bench run $(DEMO) --study build/demo/default.db
	@echo
	@$(BIN)/mctsvs report build/demo/default.db build/demo/paper.db -o build/demo/report.html

# branch coverage is measured, and must be 92 %, where all tests run: without ARGS
test: $(VENV)/stamp-test
	rm -f .coverage .coverage.*
	$(BIN)/python -m pytest -n 2 --dist worksteal $(if $(ARGS),,--cov --cov-report=) $(ARGS)
	$(if $(ARGS),,$(BIN)/python benchmarks/covered.py --least 92)

# the core without extras: PyTorch, MuJoCo, Ray and the like are not needed
test-fast: $(VENV)/stamp-fast
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow and not docs" $(FAST) $(ARGS)

lint: $(VENV)/stamp-dev
	$(BIN)/ruff check src tests benchmarks examples docs/conf.py docs/_ext docs/pictures
	$(BIN)/ruff format --check src tests benchmarks examples docs/conf.py docs/_ext docs/pictures

types: $(VENV)/stamp-dev
	$(BIN)/mypy

layers: $(VENV)/stamp-dev
	$(BIN)/lint-imports

# the site, in build/docs; a warning, such as a link to a page or a heading that does not exist, is an error
docs: $(VENV)/stamp-docs
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/docs
	@echo "open build/docs/index.html"

# sdist and wheel as a registry wants them; the wheel alone, in an empty environment, runs the README's first example,
# and with the extra of tables also NAS-Bench-201
package: $(VENV)/stamp-dev
	rm -rf build/dist build/lib build/empty && mkdir -p build
	$(BIN)/python -m build --no-isolation --outdir build/dist . > build/package.log
	$(BIN)/twine check --strict build/dist/*
	$(BIN)/check-wheel-contents build/dist/*.whl
	$(PYTHON) -m venv build/empty
	build/empty/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt build/dist/*.whl
	awk '/^```python/ {inside = 1; next} /^```/ && inside {exit} inside' README.md > build/empty/first.py
	cd build/empty && bin/python first.py && bin/mctsvs --version
	build/empty/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt "$$(ls build/dist/*.whl)[nas]"
	cd build/empty && XDG_DATA_HOME=data MCTSVS_DATA= bin/mctsvs bench reproduce nas --quick --quiet

check: test lint types layers docs package

# of the docs and the README, from real runs
pictures: $(VENV)/stamp-test
	$(BIN)/python docs/pictures/make.py

# our default beside other libraries (hours with all methods)
bench: $(VENV)/stamp-test
	$(BIN)/python benchmarks/peers.py $(ARGS)

speed: $(VENV)/stamp-test
	$(BIN)/python benchmarks/speed.py all

# every table and figure of the paper (days with the slow methods; ARGS=--quick: minutes)
reproduce: $(VENV)/stamp-test
	$(BIN)/mctsvs bench reproduce all -o docs/results/paper $(ARGS)

$(VENV):
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "mctsvs needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/stamp-demo: pyproject.toml constraints.txt | $(VENV)
	$(PIP) --editable '.[report]'
	@touch $@

$(VENV)/stamp-fast: pyproject.toml constraints.txt | $(VENV)
	$(PIP) --editable '.[test-fast]'
	@touch $@

$(VENV)/stamp-test: pyproject.toml constraints.txt | $(VENV)
	$(PIP) --editable '.[test]'
	@touch $@ $(VENV)/stamp-demo $(VENV)/stamp-fast

$(VENV)/stamp-dev: pyproject.toml constraints.txt | $(VENV)
	$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/stamp-test $(VENV)/stamp-demo $(VENV)/stamp-fast

$(VENV)/stamp-docs: pyproject.toml constraints.txt | $(VENV)
	$(PIP) --editable '.[docs]'
	@touch $@

clean:
	rm -rf $(VENV) build dist src/*.egg-info .coverage .coverage.*

# the only way golden traces change; commit the file with the change that caused it
golden: $(VENV)/stamp-test
	$(BIN)/python tests/test_golden.py --write
