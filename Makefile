# make demo   sets up what it needs, runs the embedded benchmark with the embedded model, says what that found, writes a page
# make demo-video  the same for video: the embedded clips, and which moment of them is needed (three and a half minutes)
# make test   sets everything up, runs the tests
# make test-deep  the same tests at their whole size: all worlds, replays, fuzz cases, options (tests/sizes.py)
# make test-floors  installs the lowest versions that pyproject.toml allows, runs the tests that need no harness (2 minutes)
# make test-action  runs action.yml in an empty environment on a stored run (a minute)
# make check  format, lint, types, architecture
# make docs   builds the site of docs/ into build/site; a dead link or a page outside the navigation is an error
# TORCH_INDEX=address  takes torch and torchvision from another index, for example one with the smaller wheels for CPUs
# CONSTRAINTS=/dev/null  installs the newest packages in place of those of constraints.txt
# VENV=dir    reuses an environment that exists, or says where to put the new one
VENV ?= .venv
PYTHON ?= python3
CONSTRAINTS ?= constraints.txt
BIN := $(VENV)/bin
TORCH_INDEX ?=
OUT ?= out/demo
DEMO := $(VENV)/.lmms-patch-demo
INSTALLED := $(VENV)/.lmms-patch-installed
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS)

.PHONY: setup demo demo-video test test-deep test-floors test-action check docs format demo-model clean

setup: $(INSTALLED)

$(DEMO): pyproject.toml constraints.txt
	@echo "Installing lmms-eval, torch and lmms-patch into $(VENV): some minutes and 7 GB the first time."
	@$(install-torch)
	@$(PIP) --editable '.[report]'
	@touch $@

$(INSTALLED): pyproject.toml constraints.txt
	@echo "Installing lmms-eval, torch, lmms-patch and what its tests need into $(VENV): some minutes and 8 GB the first time."
	@$(install-torch)
	@$(PIP) --editable '.[all,dev]'
	@touch $(DEMO) $@

define install-torch
test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
$(if $(TORCH_INDEX),PIP_INDEX_URL=$(TORCH_INDEX) $(PIP) torch torchvision)
endef

demo: $(DEMO)
	@rm -rf $(OUT)
	@HF_HUB_OFFLINE=1 $(BIN)/lmms-patch demo --output $(OUT)

demo-video: $(DEMO)
	@rm -rf $(OUT)-video
	@HF_HUB_OFFLINE=1 $(BIN)/lmms-patch demo --video --output $(OUT)-video

TEST = PYTHONDONTWRITEBYTECODE= HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder
test: setup
	$(TEST)

test-deep: setup
	LMMS_PATCH_DEEP=1 $(TEST)

# Those that use most of numpy, scipy, scikit-learn, lightgbm, Pillow, OpenCV, Altair, Jinja, pyarrow, rich, typer and the hub's library.
FLOORS := tests/stats/test_chance.py tests/stats/test_correlation.py tests/stats/test_resample.py tests/stats/test_gate.py tests/stats/test_index.py tests/gate/test_limits.py \
  tests/gate/test_partial.py tests/gate/test_rules.py tests/ask/test_views.py tests/runs/test_schema.py tests/runs/test_tables.py tests/present/test_sheets.py tests/present/terminal/test_folding.py \
  tests/tst/test_features.py tests/tst/test_trees.py \
  tests/magic/build/test_builder.py tests/magic/test_draw.py tests/magic/test_dataset_names.py tests/magic/score/test_magiscore.py tests/present/page/test_report.py \
  tests/present/page/test_figures.py tests/present/page/test_rows.py tests/app/commands/test_config.py tests/app/commands/test_show.py tests/app/commands/test_analyze.py

test-floors:
	rm -rf build/floors
	$(PYTHON) -m venv build/floors
	build/floors/bin/python -m pip install --quiet --disable-pip-version-check --requirement constraints-lowest.txt pytest pytest-timeout hypothesis jsonschema
	PYTHONPATH=. build/floors/bin/python -m pytest -q -p no:cacheprovider $(FLOORS)

test-action: setup
	$(BIN)/python scripts/action.py

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

demo-model: setup
	$(BIN)/python scripts/mosaic/build_data.py
	$(BIN)/python scripts/mosaic/train.py

clean:
	rm -rf out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
