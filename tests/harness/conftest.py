"""Indexing the host's 1,700 task files takes seconds: done once for all in-process tests."""

import copy
import functools

import pytest
from lmms_eval import models  # noqa: F401 - loads the entry points, as every way of running the host does
from lmms_eval.tasks import TaskManager


@pytest.fixture(autouse=True, scope="session")
def _index_once():
    original, known = TaskManager._get_task_and_group, {}

    @functools.wraps(original)
    def cached(self, task_dir):
        task_dir = str(task_dir)
        if "site-packages" not in task_dir and not task_dir.endswith("/tasks"):
            return original(self, task_dir)
        if task_dir not in known:
            known[task_dir] = original(self, task_dir)
        return copy.deepcopy(known[task_dir])

    TaskManager._get_task_and_group = cached
    yield
    TaskManager._get_task_and_group = original
