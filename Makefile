# make demo: audit the four checkers (KernelBench's in both its tolerances) without a GPU. make test: the test suite. make lint: style, types, import direction.
# make docs: the reference pages that are made from the package.
# A smaller torch, built for machines without a GPU: make demo TORCH_INDEX=https://download.pytorch.org/whl/cpu

PYTHON ?= python3
TORCH_INDEX ?=
# nproc answers OMP_NUM_THREADS where that is set, as it is in .ci/run.
WORKERS ?= $(shell env -u OMP_NUM_THREADS nproc)
PYTEST_ARGS ?=
BIN := .venv/bin
INSTALLED := .venv/.installed
RUN := runs/demo
DEMO_PROBLEMS := --problems softmax,reduction,arg_reduction,activation,elementwise,loss

.PHONY: demo test lint docs clean

demo: $(INSTALLED)
	@$(BIN)/truekernel doctor
	@rm -rf $(RUN)
	@$(BIN)/truekernel audit $(DEMO_PROBLEMS) --sample 900 --workers $(WORKERS) --run $(RUN)
	@echo "Open $(CURDIR)/$(RUN)/report.html in a browser."

test: $(INSTALLED)
	$(BIN)/python -m pytest -n $(WORKERS) $(PYTEST_ARGS)

lint: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

docs: $(INSTALLED)
	$(BIN)/python docs/reference/build.py

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or later is needed: make PYTHON=python3.12"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || \
	  { echo "No virtual environment could be made: apt install python3-venv"; exit 2; }
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) --constraint constraints.txt --editable . --group dev
	@touch $@

clean:
	rm -rf .venv runs build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
