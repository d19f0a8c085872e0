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

.PHONY: help demo test lint docs bench bench-quick lower-bounds another-python release constraints audit newest clean
help:
	@echo "make demo   find objects in images and the shapes that make molecules smell, in about two minutes"
	@echo "make test   lint, type check, all tests, documentation"
	@echo "make bench  speed and accuracy against other packages, growth with size (two hours; into build/bench)"
	@echo "make bench-quick  the main speeds as ratios, and what got slower than recorded (under three minutes)"
	@echo "make docs   build the documentation into site/"
	@echo "make lower-bounds PYTHON=python3.11   the core of the tests with the oldest dependencies"
	@echo "make another-python PYTHON=python3.13  the core of the tests with another Python"
	@echo "make newest   the core of the tests with the newest dependencies, pre-releases included"
	@echo "make release  source archive, wheel, parts list (SBOM) and checksums into dist/, built twice and compared"
	@echo "make constraints   renew constraints.txt, the versions that everything above installs"
	@echo "make audit    compare those versions with the known vulnerabilities (needs the network)"

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Installed anew whenever the list of dependencies changes. The versions, also of what builds the package, are those
# that the tests last passed with: a newer release of anything cannot break this.
$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -c constraints.txt --upgrade pip
	$(PIP) -c constraints.txt --build-constraint constraints.txt -e ".[vision,heic,review,cluster]" --group dev
	touch $@

demo: $(VENV)/.installed
	$(BIN)/bagwise demo -o demo-out

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint docs
	OMP_NUM_THREADS=1 $(BIN)/pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder --cov --cov-report term:skip-covered --cov-fail-under $(COVERAGE)

docs: $(VENV)/.installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

bench: $(VENV)/.installed
	$(BIN)/python benchmarks/compare.py -o build/bench
	$(BIN)/python benchmarks/scaling.py -o build/bench --plot build/bench/images/scaling.png

# Exit code 1 when something got slower by more than a fifth; python -m benchmarks.quick --record keeps new figures.
bench-quick: $(VENV)/.installed
	$(BIN)/python -m benchmarks.quick

# Everything but the networks, the browser and what is marked slow, in an environment of its own: about two and a half
# minutes of installing, ten of tests.
define core_of_the_tests
	$(PYTHON) -m venv --clear build/$@
	build/$@/bin/python -m pip install --quiet --disable-pip-version-check $(1) \
		".[vision,review,cluster]" pytest pytest-xdist hypothesis pandas "moto[server]" s3fs
	OMP_NUM_THREADS=1 build/$@/bin/pytest -q -m "not slow and not browser" -p no:cacheprovider \
		tests/test_*.py tests/utils tests/rmi tests/contract tests/cli tests/datasets tests/discovery tests/review tests/report \
		tests/faults tests/cluster tests/docs/test_commands.py
endef

# The oldest versions of everything; for Python 3.11.
lower-bounds:
	$(call core_of_the_tests,-c tests/packaging/lower-bounds.txt)

another-python:
	$(call core_of_the_tests,-c constraints.txt)

# Says early what a coming release of scikit-learn or NumPy breaks; what fails here is no reason to hold a change back.
newest:
	$(call core_of_the_tests,--upgrade --pre)

release: $(VENV)/.installed
	$(BIN)/python -m release.build dist

constraints: $(VENV)/.installed
	$(BIN)/python -m release.constraints

# --strict: a package that could not be looked up must not count as clean.
audit: $(VENV)/.installed
	$(BIN)/pip-audit --strict --no-deps --disable-pip -r constraints.txt

clean:
	rm -rf $(VENV) demo-out site dist build .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
