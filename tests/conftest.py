"""Tests are offline, and keep the caches of datasets apart from the user's."""

import os
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("HF_HOME", os.path.join(tempfile.gettempdir(), "lmms_patch_tests_hf"))
os.environ.setdefault("LMMS_EVAL_HOME", os.path.join(tempfile.gettempdir(), "lmms_patch_tests_lmms"))
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("WANDB_MODE", "offline")
