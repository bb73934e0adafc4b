# make sider   trains label message passing on the side effects of drugs
# make test    runs the tests
# make help    lists everything else

PYTHON ?= python3
# Any arguments of pip install, such as TORCH="torch==2.13.0+cu130 --find-links DIR".
TORCH ?= torch==2.13.0
VENV ?= .venv
OLDEST := torch==2.6.0 torch-geometric==2.6.0
# Passed on to the example and to pytest.
ARGS ?=
# All tests of a file run in one process, which makes once what they share.
PYTEST_ARGS ?= -n 2 --dist loadfile
BROWSERS := chromium chromium-browser google-chrome
SPARSE_TESTS := tests/ops tests/nn tests/benchmarks/speed/test_attention.py

BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps
# Fixes the torch that was installed first, so that no other requirement replaces it.
CONSTRAINTS := $(VENV)/constraints.txt
# Python compiles what it imports, much less than all that is installed.
PIP_INSTALL = $(BIN)/python -m pip install --no-compile --disable-pip-version-check --constraint $(CONSTRAINTS)

# Tests start many processes; each would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

# Recipes read it as $$TORCH: the shell then splits it into words but takes no "<" in it for a redirection.
export TORCH

.PHONY: help sider test test-browser test-oldest test-slow test-sparse lint format docs dist clean FORCE
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20
	@echo
	@echo 'Variables: PYTHON=$(PYTHON)  VENV=$(VENV)  TORCH="$(TORCH)"'
	@echo '           ARGS="..." for make sider, PYTEST_ARGS="$(PYTEST_ARGS)" for make test'

# One thread: for such small matrices it is as fast, and it does not fight over busy cores.
sider: $(STAMPS)/app ## Train on the SIDER side effects and print the comparison table
	OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} $(BIN)/python examples/sider_graph.py $(ARGS)

# One thread each: the test processes already share the cores.
test: $(STAMPS)/dev ## Run the tests
	OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} $(BIN)/python -m pytest $(PYTEST_ARGS)

test-slow: $(STAMPS)/dev ## Run the tests that take long: exports, the server, tutorials
	OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} $(BIN)/python -m pytest -m slow $(PYTEST_ARGS)

test-sparse: $(STAMPS)/sparse ## Compile torch-scatter and torch-sparse, once, and run the tests of what uses them
	OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} $(BIN)/python -m pytest $(PYTEST_ARGS) $(SPARSE_TESTS)

test-oldest: ## Run the tests with the oldest PyTorch and PyTorch Geometric, in an environment of their own
	$(MAKE) test VENV=.venv-oldest TORCH="$(OLDEST)"

test-browser: $(STAMPS)/browser ## Run the tests of the HTML report in a browser, which is installed if there is none
	OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} $(BIN)/python -m pytest tests/browser

lint: $(STAMPS)/dev ## Check style, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict tg_mlc

format: $(STAMPS)/dev ## Format the code and mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(STAMPS)/docs ## Build the documentation into docs/_build/html
	$(BIN)/python -m sphinx -W -n --keep-going -b html docs docs/_build/html

dist: $(STAMPS)/dev ## Build a wheel and a source distribution, and use both, and each extra, in environments of their own
	$(PIP_INSTALL) build check-jsonschema twine zizmor
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/zizmor --offline --quiet .github/workflows
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python tools/smoke.py dist --torch "$$TORCH"

clean: ## Remove the environment and everything built (not the cached wheels)
	rm -rf $(VENV) build dist *.egg-info docs/_build docs/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment, in steps that each leave a stamp.

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "Expected PYTHON to be Python 3.10 or newer (got '$(PYTHON)': $$($(PYTHON) --version 2>&1));" \
	    "choose another one with: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS) && touch $@

# Changes only when TORCH does.
$(STAMPS)/torch.txt: $(STAMPS)/venv FORCE
	@echo "$$TORCH" | cmp -s - $@ || echo "$$TORCH" > $@

$(STAMPS)/torch: $(STAMPS)/torch.txt
	set -f; $(BIN)/python -m pip install --no-compile --disable-pip-version-check $$TORCH
	$(BIN)/python -c 'from importlib.metadata import version; print("torch==" + version("torch"))' > $(CONSTRAINTS)
	@touch $@

$(STAMPS)/app: $(STAMPS)/torch pyproject.toml
	$(PIP_INSTALL) --editable '.[data,explain,molecules,plot,train]'
	@touch $@

$(STAMPS)/dev: $(STAMPS)/app
	$(PIP_INSTALL) --editable '.[dev]'
	@touch $@

$(STAMPS)/docs: $(STAMPS)/app
	$(PIP_INSTALL) --editable '.[docs]'
	@touch $@

$(STAMPS)/browser: $(STAMPS)/dev
	$(PIP_INSTALL) playwright axe-playwright-python
	@command -v $(BROWSERS) >/dev/null || $(BIN)/python -m playwright install chromium
	@touch $@

$(STAMPS)/sparse: $(STAMPS)/dev tools/install_sparse.py
	$(PIP_INSTALL) ninja setuptools wheel
	$(BIN)/python tools/install_sparse.py
	@touch $@
