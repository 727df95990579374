# Everything runs in a virtual environment that is made on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
AS_ROOT := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

.PHONY: help demo test check pytest slow browser chromium bench docs format clean

help:
	@echo "make demo    oracles and learners head to head: tables, figures and one HTML page in demo/report"
	@echo "make test    lint, types, import layers, tests"
	@echo "make slow    the longer tests"
	@echo "make browser the page of a report in Chromium, which is installed if it is absent"
	@echo "make bench   the benchmarks of the oracles, ratios side by side"
	@echo "make docs    the documentation site, in build/site; open its index.html"
	@echo "make format  rewrite the sources in the project's format"
	@echo "make clean   remove the virtual environment and caches"

demo: $(VENV)/runs
	$(BIN)/amdp compare examples/head_to_head.toml --out demo

test: check pytest

check: $(VENV)/tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

pytest: $(VENV)/tests
	$(BIN)/python -m pytest

slow: $(VENV)/tests
	$(BIN)/python -m pytest -m slow

browser: $(VENV)/tests
	@command -v chromium || command -v chromium-browser || command -v google-chrome || $(MAKE) chromium
	$(BIN)/python -m pytest -m browser

chromium:
	$(AS_ROOT) apt-get update -q
	$(AS_ROOT) apt-get install -y -q chromium

bench: $(VENV)/benches
	$(BIN)/python -m benchmarks oracles

docs: $(VENV)/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

format: $(VENV)/tests
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "amdp needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/runs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[plots]"
	@touch $@

$(VENV)/tests: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[test]"
	@touch $@ $(VENV)/runs

$(VENV)/benches: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[bench]"
	@touch $@ $(VENV)/tests $(VENV)/runs

$(VENV)/docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	@touch $@
