# make demo   sets everything up, runs the embedded benchmark with the embedded model, prints the table, writes a page
# make test   sets everything up, runs the tests
# make check  format, lint, types, architecture
# VENV=dir    reuses an environment that exists, or says where to put the new one
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
OUT ?= out/demo
INSTALLED := $(VENV)/.lmms-patch-installed

.PHONY: setup demo test check format demo-model coverage clean

setup: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing lmms-eval, torch and lmms-patch into $(VENV): about 3 minutes and 7 GB the first time."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: setup
	rm -rf $(OUT)
	HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false $(BIN)/lmms-eval --model mosaic_vlm --batch_size 16 --tasks mosaic_rci --output_path $(OUT) --log_samples --verbosity WARNING
	$(BIN)/lmms-patch show $(OUT)
	$(BIN)/lmms-patch report $(OUT) --output $(OUT)/report --quiet

test: setup
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

demo-model: setup
	$(BIN)/python scripts/mosaic/build_data.py
	$(BIN)/python scripts/mosaic/train.py

coverage: setup
	$(BIN)/lmms-patch coverage --write docs/coverage.md

clean:
	rm -rf out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
