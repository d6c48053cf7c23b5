"""Tests are offline, and keep the caches of datasets apart from the user's."""

import functools
import gc
import os
import sys
import tempfile

if (
    "PYTEST_XDIST_WORKER" in os.environ
):  # before NumPy is imported: a core for each worker, since threads of several would wait for each other
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import loguru  # noqa: F401 - here, because it writes to the stderr that it finds at its first import: within a test that would be one that ends with the test
import pytest
from hypothesis import settings
from loguru._better_exceptions import ExceptionFormatter

from tests.harness import warm
from tests.making.browsing import axe, browser  # noqa: F401 - fixtures
from tests.sizes import examples

# Until all tests are collected: what they import stays, and looking for garbage among it takes a third of that time
gc.disable()

# The same examples each time: a merge is not blocked by a draw. LMMS_PATCH_RANDOM=1 looks for new ones.
settings.register_profile("same", examples(50), derandomize=True)
if not os.environ.get("LMMS_PATCH_RANDOM"):
    settings.load_profile("same")


os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("HF_HOME", os.path.join(tempfile.gettempdir(), "lmms_patch_tests_hf"))
os.environ.setdefault("LMMS_EVAL_HOME", os.path.join(tempfile.gettempdir(), "lmms_patch_tests_lmms"))
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("WANDB_MODE", "offline")


# Each sink of loguru asks sysconfig 80 times where Python's library is, in 2 ms; a run has a sink for each portion of
# requests.
ExceptionFormatter._get_lib_dirs = staticmethod(functools.cache(ExceptionFormatter._get_lib_dirs))


def pytest_configure():
    """Import the harness in each worker of several, and fork from it at once the process that runs command lines: both need it."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        warm.prepare()


def pytest_collection_finish():
    """Look for garbage from here on, but seldom, and not among what was collected."""
    gc.freeze()
    gc.set_threshold(20_000, 20)
    gc.enable()


def pytest_collection_modifyitems(items):
    """Put files with real command lines first: they take longest, and with several workers none should wait for the last of them.

    The others go from the last to the first, since those of ``tests/app/commands`` and ``tests/ask`` are small and many.
    """
    slow = {item.path for item in items if item.get_closest_marker("cli")}
    place = {path: -at for at, path in enumerate(dict.fromkeys(item.path for item in items))}
    items.sort(key=lambda item: (item.path not in slow, place[item.path]))


@pytest.fixture(autouse=True, scope="module")
def _loaded_modules_are_no_garbage():
    """Leave what is loaded by now out of garbage collections: lmms-eval collects twice a run, each time a second for all that torch brings."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def indexed():
    """Let this process index the host's 1,700 task files once: it takes a second of processor time where commands do so, whenever they look a task up."""
    from tests.harness.warm import index_once

    undo = index_once()
    yield
    undo()


def pytest_runtest_teardown():
    """Let nltk's downloader, if a test has imported it, write to a stderr that stays: it keeps that of its import, which may end with the test."""
    if made := getattr(sys.modules.get("nltk.downloader"), "Downloader", None):
        made.download.__defaults__ = tuple(
            sys.__stderr__ if hasattr(value, "write") else value for value in made.download.__defaults__
        )


def pytest_sessionfinish():
    gc.unfreeze()  # C extensions report what is alive at the end as leaks
