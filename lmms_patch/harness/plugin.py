"""The entry point: registers the plugin's models and teaches ``TaskManager`` the wrapped names.

lmms-eval loads the entry-point group ``lmms_eval.models`` while ``lmms_eval.models`` is imported,
before any task is looked up. This is the only module with side effects, and only when it is called.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from loguru import logger

from lmms_patch import resources
from lmms_patch.errors import CannotWrapError, HostError, PatchError
from lmms_patch.harness import compat
from lmms_patch.harness.refuse import Refusal, install_exit_status, refuse
from lmms_patch.scoring import scalar
from lmms_patch.spec import KINDS, WrapSpec, parse

_MARK = "_lmms_patch"


def register() -> list[Any]:
    """What the entry point calls: installs the hook, returns the manifests of our models."""
    from lmms_eval.models.registry_v2 import ModelManifest

    install()
    folder = "lmms_patch.harness.models"
    return [
        ModelManifest(model_id="mosaic_vlm", chat_class_path=f"{folder}.mosaic_vlm.MosaicVLM"),
        ModelManifest(model_id="tst_rf", simple_class_path=f"{folder}.tst.TstRf"),
        ModelManifest(model_id="tst_lora", simple_class_path=f"{folder}.tst.TstLora"),
    ]


def install() -> None:
    """Install the three patches of ``TaskManager``; a second call changes nothing.

    A host that is not as expected is left as it is, but for a run that asks for a wrapped name:
    that one stops, with one line.
    """
    from lmms_eval.tasks import TaskManager

    if getattr(TaskManager.match_tasks, _MARK, False):
        return
    install_exit_status()
    try:
        compat.check_host(TaskManager)
    except HostError as error:
        _patch(TaskManager, "match_tasks", functools.partial(_refusing_match, error))
        return
    _patch(TaskManager, "initialize_tasks", _initialize_tasks)
    _patch(TaskManager, "match_tasks", _match_tasks)
    _patch(TaskManager, "_load_individual_task_or_group", _load)


def _patch(owner: type, name: str, replacement: Callable[..., Any]) -> None:
    """Replace a method by ``replacement(original, self, ...)``; the original stays reachable as ``__wrapped__``."""
    original = getattr(owner, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return replacement(original, self, *args, **kwargs)

    setattr(method, _MARK, True)
    setattr(owner, name, method)


def _refusing_match(error: HostError, original: Callable[..., Any], manager: Any, task_list: Any) -> Any:
    """``match_tasks`` of a host that we do not know: native names as ever, wrapped names refused."""
    for name in [task_list] if isinstance(task_list, str) else task_list:
        if name not in manager.all_tasks and parse(name) is not None:
            refuse(error)
    return original(manager, task_list)


def _initialize_tasks(original: Callable[..., Any], manager: Any, include_path: Any = None, include_defaults: bool = True) -> Any:
    """Index the plugin's own task folder too. Why here: it is where the host decides precedence.

    The first folder that has a name wins: built-in, then plugin, then ``--include_path``.
    """
    if not include_defaults:
        return original(manager, include_path=include_path, include_defaults=False)
    include = [include_path] if isinstance(include_path, str) else list(include_path or [])
    return original(manager, include_path=[str(resources.folder("tasks")), *include], include_defaults=True)


def _match_tasks(original: Callable[..., Any], manager: Any, task_list: Any) -> list[str]:
    """Find the wrapped names of ``--tasks``, and refuse what cannot be wrapped.

    Why here: it is the last step of the command line before the model is loaded. The host compares
    what we return with what was typed.
    """
    from lmms_patch.harness import configs, names

    asked = [task_list] if isinstance(task_list, str) else list(task_list)
    try:
        specs = names.expand(manager, asked)
        for spec in specs:
            configs.check(manager, spec)
            configs.check_model(spec, getattr(manager, "model_name", None))
    except PatchError as error:
        refuse(error)
    return sorted({*original(manager, asked), *(spec.name for spec in specs)})


def _load(
    original: Callable[..., Any],
    manager: Any,
    name_or_config: Any = None,
    task_type: str = "simple",
    parent_name: Any = None,
    update_config: Mapping[str, Any] | None = None,
) -> Any:
    """Load the base through the host's own loader, then wrap the task objects.

    Why here: it is the one door for names, groups, tags, inline members and task files, and it
    knows whether the model is simple or chat.
    """
    from lmms_patch.harness import configs, magic_files

    native = functools.partial(magic_files.load, manager, functools.partial(original, manager, task_type=task_type, parent_name=parent_name))
    try:
        spec, overrides = _spec_of(manager, name_or_config)
        if spec is None:
            if _is_leaf(manager, name_or_config):
                _note(manager, wrapped=False)
            if getattr(manager, "_lmms_patch_text_only", False) and isinstance(name_or_config, str):
                update_config = {**configs.without_videos(manager, name_or_config), **(update_config or {})} or None
            return _mend_groups(native(name_or_config, update_config=update_config))
        _note(manager, wrapped=True)
        configs.check(manager, spec)
        text_only = not KINDS[spec.kind].needs_image
        videos = configs.without_videos(manager, spec.base) if text_only else {}
        merged = {**videos, **overrides, **(update_config or {})} or None
        with _nested(manager, text_only):
            loaded = native(spec.base, update_config=merged, parent_name=None)  # else a base that is wrapped twice is renamed
        return _mend_groups(_wrap_all(loaded, spec))
    except PatchError as error:
        refuse(error)
    except Refusal as refusal:
        refuse(refusal.error)


def _spec_of(manager: Any, name_or_config: Any) -> tuple[WrapSpec | None, dict[str, Any]]:
    """What is to be wrapped, and the config overrides that came with the name; None: nothing of ours."""
    from lmms_patch.harness import configs, names

    if isinstance(name_or_config, str):
        return names.resolve(manager, name_or_config), {}
    if isinstance(name_or_config, Mapping) and isinstance(name_or_config.get("task"), str):
        explicit = configs.explicit_spec(name_or_config) if "class" in name_or_config else None
        if explicit is not None:
            names.require_base(manager, explicit)
            return explicit, {}
        if set(name_or_config).isdisjoint({"dataset_path", "class", "include"}):
            overrides = {k: v for k, v in name_or_config.items() if k != "task"}
            return names.resolve(manager, name_or_config["task"]), overrides
    return None, {}


def _wrap_all(loaded: Mapping[Any, Any], spec: WrapSpec) -> dict[Any, Any]:
    """Wrap every task of what the host loaded: one task, a tag's tasks, or groups of groups."""
    from lmms_patch.harness.tasks import WrappedTask

    out: dict[Any, Any] = {}
    for key, value in loaded.items():
        name = key if isinstance(key, str) else key.group_name
        member = spec if name == spec.base else spec.of(name)
        if isinstance(value, Mapping):
            _rename_group(key, member.name)
            out[key] = _wrap_all(value, spec)
        elif isinstance(value, WrappedTask):
            raise CannotWrapError(f"{spec.name}: {name}, a member of {spec.base}, is a wrapped task itself")
        else:
            out[member.name] = WrappedTask(value, member)
    return out


def _rename_group(group: Any, name: str) -> None:
    """Give a loaded group the wrapped name (docs/design/group-names.md)."""
    if isinstance(group, str):
        return
    config = group._config
    suffix = name.removeprefix(config.group or "")
    config.group = name
    if config.group_alias:
        config.group_alias += suffix


def _mend_groups(loaded: Mapping[Any, Any]) -> dict[Any, Any]:
    """Let each group that holds wrapped tasks pool only what its list names, and survive a missing number.

    The host pools every metric whose ``name,filter`` *contains* the listed name, so ``acc`` would
    pool ``acc_mpp3``; ``acc,none`` does not. And it adds the members' numbers, which ends the run
    where one is None.
    """
    from lmms_patch.harness.tasks import WrappedTask

    for group, members in loaded.items():
        if not isinstance(members, Mapping):
            continue
        _mend_groups(members)
        tasks = list(_tasks_in(members))
        filters = {ensemble.name for task in tasks for ensemble in task._filters}
        if any(isinstance(task, WrappedTask) for task in tasks) and not isinstance(group, str) and group._config.aggregate_metric_list is not None:
            group._config.aggregate_metric_list = [
                dataclasses.replace(
                    entry, metric=f"{entry.metric.partition(',')[0]},{name}", filter_list=[name], aggregation=_surviving(entry.aggregation)
                )
                for entry in {e.metric.partition(",")[0]: e for e in group._config.aggregate_metric_list}.values()
                for name in sorted(filters)
            ]
    return dict(loaded)


def _tasks_in(members: Mapping[Any, Any]) -> Iterator[Any]:
    for member in members.values():
        if isinstance(member, Mapping):
            yield from _tasks_in(member)
        else:
            yield member


def _surviving(aggregation: Any) -> Callable[..., Any]:
    """A group's aggregation that gives None where a member has no number (or where it fails itself), in place of ending the run."""
    already = isinstance(aggregation, functools.partial) and aggregation.func is _pool
    return aggregation if already else functools.partial(_pool, aggregation)


def _pool(aggregation: Any, metrics: list[Any], sizes: list[int], weight_by_size: bool) -> Any:
    from lmms_eval.api.metrics import aggregate_subtask_metrics

    values = [None if isinstance(value, bool) else scalar(value) for value in metrics]
    if None in values:
        return None
    try:
        pool = aggregation if callable(aggregation) else aggregate_subtask_metrics
        return pool(values, sizes, weight_by_size)
    except Exception as error:
        logger.warning(f"a group's aggregation failed: {type(error).__name__}: {error}")
        return None


@contextlib.contextmanager
def _nested(manager: Any, text_only: bool) -> Iterator[None]:
    """While a base is loaded for wrapping, the tasks that the host loads are not native tasks of the run.

    Args:
        text_only: no view shows anything: members of a group are loaded without their videos.
    """
    before = getattr(manager, "_lmms_patch_text_only", False)
    manager._lmms_patch_depth = getattr(manager, "_lmms_patch_depth", 0) + 1
    manager._lmms_patch_text_only = text_only
    try:
        yield
    finally:
        manager._lmms_patch_depth -= 1
        manager._lmms_patch_text_only = before


def _is_leaf(manager: Any, name_or_config: Any) -> bool:
    """Whether this is a task, not a group or tag of tasks."""
    if isinstance(name_or_config, str):
        return manager.task_index.get(name_or_config, {}).get("type") in ("task", "python_task")
    return isinstance(name_or_config, Mapping) and isinstance(name_or_config.get("task"), str)


def _note(manager: Any, *, wrapped: bool) -> None:
    """Warn once where wrapped and native tasks run together."""
    if getattr(manager, "_lmms_patch_depth", 0):
        return
    seen = manager.__dict__.setdefault("_lmms_patch_seen", set())
    seen.add(wrapped)
    if seen == {True, False}:
        seen.add("warned")
        logger.warning(
            "wrapped and native tasks run together: adapters that read the first request's task for a whole batch would show native "
            "docs of the wrong task; use --batch_size 1, or run the native tasks by themselves (a wrapped task reports the native metric too)"
        )
