# `make audit` and `make test` do all the set-up; `.venv` is reused while pyproject.toml is unchanged.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
ARGS ?= --form entangled

.PHONY: setup audit test lint figures bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@

audit: setup
	$(BIN)/audit $(ARGS)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/python -m pytest -n 2

figures: setup
	$(BIN)/python -m fedre_audit.figures $(FIGURES)

bench: setup
	$(BIN)/python -m fedre_audit.bench --json runs/bench.json $(BENCH)

clean:
	rm -rf $(VENV) runs build *.egg-info .mypy_cache .ruff_cache .import_linter_cache
