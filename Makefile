# Everything runs in a virtual environment that is made on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# What pip does by itself on one processor. A file that cannot be compiled is no error: it is read when it is imported.
# Tests of packages, a third of all sources, are not.
COMPILE := $(BIN)/python -W ignore -m compileall -qq -j 0 -x '[/\\]tests[/\\]' $(VENV)
AS_ROOT := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

# Exact versions of everything that is installed, and of what builds the package.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_BUILD_CONSTRAINT := $(PIP_CONSTRAINT)
# Bytecode is kept, whatever the shell says: each process that a test starts would compile all sources anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test check pytest slow browser chromium bench docs format constraints clean

help:
	@echo "make demo        FTPL and its rivals in six games: tables, figures and one HTML page in demo/report"
	@echo "make test        lint, types, import layers, tests"
	@echo "make slow        the longer tests"
	@echo "make browser     the page of a report in Chromium, which is installed if it is absent"
	@echo "make bench       the benchmarks of the oracles, ratios side by side"
	@echo "make docs        the documentation site, in build/site; open its index.html"
	@echo "make format      rewrite the sources in the project's format"
	@echo "make constraints the newest versions of all packages, into constraints.txt"
	@echo "make clean       remove the virtual environment and caches"

demo: $(VENV)/runs
	$(BIN)/amdp compare examples/head_to_head.toml --out demo

# Side by side: types are read on one processor while the tests begin on the other. It fails if either does.
test: $(VENV)/tests
	@$(MAKE) --no-print-directory --jobs=2 --keep-going check pytest

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

constraints:
	rm -rf build/newest
	$(PYTHON) -m venv build/newest
	PIP_CONSTRAINT= PIP_BUILD_CONSTRAINT= $(subst $(VENV),build/newest,$(PIP)) ".[bench]"
	head -2 constraints.txt > build/constraints.txt
	$(subst $(VENV),build/newest,$(BIN))/python -m pip freeze --exclude amdp >> build/constraints.txt
	mv build/constraints.txt constraints.txt

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "amdp needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/runs: pyproject.toml constraints.txt | $(VENV)/pyvenv.cfg
	$(PIP) --editable ".[plots]"
	-@$(COMPILE)
	@touch $@

$(VENV)/tests: pyproject.toml constraints.txt | $(VENV)/pyvenv.cfg
	$(PIP) --editable ".[test]"
	-@$(COMPILE)
	@touch $@ $(VENV)/runs

$(VENV)/benches: pyproject.toml constraints.txt | $(VENV)/pyvenv.cfg
	$(PIP) --editable ".[bench]"
	-@$(COMPILE)
	@touch $@ $(VENV)/tests $(VENV)/runs

$(VENV)/docs: pyproject.toml constraints.txt | $(VENV)/pyvenv.cfg
	$(PIP) --editable ".[docs]"
	-@$(COMPILE)
	@touch $@
