# `make` alone says what there is.

VENV := .venv
BIN := $(VENV)/bin
# Any Python 3 starts the set-up, which chooses one from 3.11 to 3.13 for the environment:
# PYTHON=/path/to/python3.12 chooses it by hand. AFD_E2E_EXTRAS=report,dev leaves out the CPU server.
BOOTSTRAP := $(or $(shell command -v python3),$(PYTHON),python3)
export PYTHON

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo test lint types unit faults docs e2e-cpu clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "First light:  make demo"
	@echo "Then:         $(BIN)/afd-e2e --help"

setup: ## .venv with everything for this machine's lanes (once; a second time returns at once)
	@$(BOOTSTRAP) -m tools.setup_venv --venv $(VENV)

demo: setup ## real vLLM servers on this CPU, native beside AFD: every claim and proof
	@$(BIN)/afd-e2e run canary-cpu --case baseline-eager --case afd-eager-1a1f

test: lint types unit faults e2e-cpu ## set-up, then every check this machine can do

lint: setup ## ruff: lint and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup ## pyright
	$(BIN)/pyright

unit: setup ## pure tests, seconds
	$(BIN)/pytest tests/unit -n 2

faults: setup ## stand-in servers that misbehave
	$(BIN)/pytest tests/faults --timeout 300 -n 4

docs: setup ## docs/faults.md, from the fault tests
	$(BIN)/python -m tests.faults.table

e2e-cpu: setup ## real servers on this CPU, one test per profile and case
	AFD_E2E_BACKEND=cpu $(BIN)/pytest tests/e2e

clean: ## remove the virtual environment, caches and build folders; runs/ stays
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
