# make demo, make test: both set up their own virtual environment first. Nothing else is needed but Python 3.11+.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= 2
# Least coverage in per cent; 0 where torch or Chromium are missing and their tests skip.
COVERAGE ?= 0

# Data sets that are not part of the project; tests that need them skip where they are not there.
BAGWISE_DATA ?= $(abspath ../shared/data)
ifneq ($(wildcard $(BAGWISE_DATA)),)
export BAGWISE_DATA
endif

.PHONY: help demo test lint docs bench lower-bounds clean
help:
	@echo "make demo   find objects in photographs and the shapes that make molecules smell, in about two minutes"
	@echo "make test   lint, type check, all tests, documentation"
	@echo "make bench  speed and accuracy against other packages, growth with size (two hours; into build/bench)"
	@echo "make docs   build the documentation into site/"
	@echo "make lower-bounds PYTHON=python3.11   the core of the tests with the oldest dependencies"

# Installed anew whenever the list of dependencies changes.
$(VENV)/.installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[vision,review,cluster]" --group dev
	touch $@

demo: $(VENV)/.installed
	$(BIN)/bagwise demo -o demo-out

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint docs
	OMP_NUM_THREADS=1 $(BIN)/pytest -n $(JOBS) --dist loadgroup --cov --cov-report term:skip-covered --cov-fail-under $(COVERAGE)

docs: $(VENV)/.installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

bench: $(VENV)/.installed
	$(BIN)/python benchmarks/compare.py -o build/bench
	$(BIN)/python benchmarks/scaling.py -o build/bench --plot build/bench/images/scaling.png

# Python 3.11 and the oldest versions of everything; two and a half minutes of installing, ten of tests.
lower-bounds:
	$(PYTHON) -m venv --clear build/lower-bounds
	build/lower-bounds/bin/python -m pip install --quiet --disable-pip-version-check \
		-c tests/packaging/lower-bounds.txt ".[vision,review,cluster]" pytest hypothesis pandas "moto[server]" s3fs
	OMP_NUM_THREADS=1 build/lower-bounds/bin/pytest -q -m "not slow and not browser" -p no:cacheprovider \
		tests/test_*.py tests/rmi tests/contract tests/cli tests/datasets tests/discovery tests/review tests/report \
		tests/cluster tests/docs/test_commands.py

clean:
	rm -rf $(VENV) demo-out site dist build .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
