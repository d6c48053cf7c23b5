"""The entry point: registers our models, and teaches the host's ``TaskManager`` the wrapped names.

lmms-eval loads the entry-point group ``lmms_eval.models`` while ``lmms_eval.models`` is imported, before any task is
looked up. This is the only module with side effects, and they happen only when its functions are called.

Importing ``lmms_eval.models`` takes 0.1 s; importing ``lmms_eval.tasks`` takes seconds (torch, datasets). So
``register`` imports only what is loaded by then, functions import what needs NumPy when they are called, and the
patches wait until ``lmms_eval.tasks`` is imported.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lmms_patch import resources
from lmms_patch.errors import CannotWrapError, HostError, PatchError
from lmms_patch.harness import compat, task_files
from lmms_patch.harness.refuse import Refusal, install_exit_status, refuse
from lmms_patch.text import log

if TYPE_CHECKING:
    from lmms_patch.ask.spec import WrapSpec

_MARK = "_lmms_patch"
_TASKS = "lmms_eval.tasks"


def register() -> list[Any]:
    """Patch the host's tasks, now or as soon as they are imported, and return the manifests of our models.

    lmms-eval calls this function through the entry point.
    """
    from lmms_eval.models.registry_v2 import ModelManifest

    install_exit_status()
    # a hook sees only imports still to come: where the tasks are imported already, patch at once
    if _TASKS in sys.modules:
        install()
    elif not any(isinstance(finder, _OnceImported) for finder in sys.meta_path):
        sys.meta_path.insert(0, _OnceImported())
    folder = "lmms_patch.harness.models"
    return [
        ModelManifest(model_id="mosaic_vlm", chat_class_path=f"{folder}.mosaic_vlm.MosaicVLM"),
        ModelManifest(
            model_id="mosaic_reader",
            simple_class_path=f"{folder}.mosaic_reader.MosaicReader",
            chat_class_path=f"{folder}.mosaic_reader.MosaicReaderChat",
        ),
        ModelManifest(model_id="tst_rf", simple_class_path=f"{folder}.tst.TstRf"),
        ModelManifest(model_id="tst_lora", simple_class_path=f"{folder}.tst.TstLora"),
    ]


class _OnceImported(MetaPathFinder):
    """An import hook: find ``lmms_eval.tasks`` as Python does, and install the patches once the module has run.

    Why a hook: a run calls nothing of ours between the import of ``lmms_eval.models`` and its first use of
    ``TaskManager``. A lazy module attribute would not reach everyone, because ``from lmms_eval.tasks import
    TaskManager`` takes the class out of its module. The hook removes itself when it has done its work.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of ``lmms_eval.tasks``, its loader made to call ``_run``; None for every module but this."""
        if fullname != _TASKS:
            return None
        others = [finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec")]
        spec = next((spec for finder in others if (spec := finder.find_spec(fullname, path, target))), None)
        if spec is not None and spec.loader is not None:
            # patch the loader itself: readers of sources and resources ask for the loader's type, so it must not be
            # wrapped
            spec.loader.exec_module = functools.partial(self._run, spec.loader)  # type: ignore[method-assign]
        return spec

    def _run(self, loader: Any, module: ModuleType) -> None:
        """Run the module and install the patches.

        If the module fails the hook stays, so that the next import finds it again.
        """
        # give the loader its own method back first, or the next line would call this function again
        vars(loader).pop("exec_module", None)
        loader.exec_module(module)
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        try:
            install()
        except Exception as error:
            # the host too goes on without an entry point that fails, and says so
            log().warning(
                f"lmms-patch could not be installed, so its tasks are not found: {type(error).__name__}: {error}"
            )


def install() -> None:
    """Replace the methods of ``TaskManager`` listed in ``compat.PATCHED``, and the host's reader of task files.

    A second call changes nothing.

    An unsupported host is left as it is; only a run that asks for a wrapped name stops there, with one line.
    """
    from lmms_eval import utils
    from lmms_eval.tasks import TaskManager

    if getattr(getattr(TaskManager, "match_tasks", None), _MARK, False):
        return
    try:
        compat.check_host("TaskManager", "ResponseCache", "lmms_eval.caching.response_cache")
    except HostError as error:
        # nothing else is replaced, so that a run without wrapped names goes on
        _patch(TaskManager, "match_tasks", functools.partial(_refusing_match, error))
        return
    if tuple(inspect.signature(utils.load_yaml_config).parameters) == compat.READS_TASK_FILES:
        _patch(utils, "load_yaml_config", task_files.load)
    _patch(TaskManager, "initialize_tasks", _initialize_tasks)
    _patch(TaskManager, "match_tasks", _match_tasks)
    _patch(TaskManager, "_load_individual_task_or_group", _load)


def _patch(owner: Any, name: str, replacement: Callable[..., Any]) -> None:
    """Replace a function of a class or module by ``replacement(original, ...)``.

    The original stays reachable as ``__wrapped__``. Arguments that the host gives beyond those that we know go to it
    past the replacement.

    A function that we have replaced already stays as it is.
    """
    original = getattr(owner, name, None)
    if original is None or getattr(original, _MARK, False):
        return
    # parameters that a later host adds are unknown here, and handed on past the replacement
    parameters = tuple(inspect.signature(original).parameters)
    known = compat.wanted_of(owner.__name__).get(name, parameters)
    more = parameters[len(known) :]

    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        beyond = dict(zip(more, args[len(known) :], strict=False))
        beyond |= {key: kwargs.pop(key) for key in more if key in kwargs}
        return replacement(functools.partial(original, **beyond), *args[: len(known)], **kwargs)

    setattr(function, _MARK, True)
    # ``getattr`` took a static method out of its wrapper; without a new wrapper it would get the object as an argument
    setattr(
        owner,
        name,
        staticmethod(function) if isinstance(inspect.getattr_static(owner, name), staticmethod) else function,
    )


def _refusing_match(error: HostError, original: Callable[..., Any], manager: Any, task_list: Any) -> Any:
    """Refuse wrapped names on a host of an unsupported version, and match native names as before (``match_tasks``)."""
    from lmms_patch.ask.spec import parse

    for name in [task_list] if isinstance(task_list, str) else task_list:
        # a native task whose name only looks wrapped is matched as ever
        if name not in manager.all_tasks and parse(name) is not None:
            refuse(error)
    return original(manager, task_list)


def _initialize_tasks(
    original: Callable[..., Any], manager: Any, include_path: Any = None, include_defaults: bool = True
) -> Any:
    """Add the plugin's task folder to the index, and split a text of several folders at the separator of PATH.

    Why this method: the host decides here which folder wins. The first folder that has a name wins: built-in, then
    plugin, then ``--include_path``.
    """
    # before the user's folders, since the first folder that has a name wins
    ours = [str(resources.folder("tasks"))] if include_defaults else []
    folders = [*ours, *task_files.folders_of(include_path)]
    return original(manager, include_path=folders, include_defaults=include_defaults)


def _match_tasks(original: Callable[..., Any], manager: Any, task_list: Any) -> list[str]:
    """Find the wrapped names in ``--tasks``, and refuse what cannot be wrapped.

    Why this method: it is the last step of the command line before the model is loaded, so a mistake costs no time. The
    host compares the names that we return with those that were typed.
    """
    from lmms_patch.harness.names import configs

    asked = [task_list] if isinstance(task_list, str) else list(task_list)
    try:
        specs = configs.expand(manager, asked)
        # before a model is loaded
        if specs:
            compat.check_host(*compat.HOMES)
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
    """Load the base with the host's loader, then wrap the loaded tasks.

    Why this method: names, groups, tags, inline members and task files all pass through it, and it knows whether the
    model is simple or chat.
    """
    from lmms_patch.harness.names import configs

    native = functools.partial(
        _load_native, manager, functools.partial(original, manager, task_type=task_type, parent_name=parent_name)
    )
    try:
        spec, overrides = _spec_of(manager, name_or_config)
        changes = {**overrides, **(update_config or {})}
        if spec is not None:
            return _load_wrapped(manager, native, spec, changes)
        if getattr(manager, "_lmms_patch_text_only", None) and isinstance(name_or_config, str):
            changes = {**configs.without_videos(manager, name_or_config), **changes}
        return _mend_groups(native(name_or_config, update_config=changes or None))
    except PatchError as error:
        refuse(error)
    except Refusal as refusal:
        refuse(refusal.error)


def _load_native(manager: Any, loader: Callable[..., Any], name_or_config: Any, **kwargs: Any) -> Any:
    """Load tasks by the host's loader.

    Where a wrapped task asks for one whose dataset cannot be loaded, say which dataset, and why.
    """
    from lmms_patch.harness.names import effects

    # a native task of the run fails as it always did
    asked_by_us = getattr(manager, "_lmms_patch_text_only", None) is not None and _is_leaf(manager, name_or_config)
    with loading(manager, name_or_config) if asked_by_us else contextlib.nullcontext():
        loaded = dict(loader(name_or_config, **kwargs))
    for task in filter(effects.is_magic, _tasks_in(loaded)):
        # takes two seconds to import
        from lmms_patch.harness.magic import tasks

        tasks.bind(task)
        patch_runs()
    return loaded


@contextlib.contextmanager
def loading(manager: Any, name_or_config: Any) -> Iterator[None]:
    """Turn a failure to load a task's dataset into a line with the task, the dataset and the cause.

    Two exceptions are caught. The host tries a download five times and then raises ``RetryError``, whose text only
    names a future object. A task that is a Python class loads its data itself, and lets errors of the network and the
    disk (``OSError``) through.

    Args:
        manager: the harness's task manager.
        name_or_config: the task, as ``TaskManager`` was asked for it.

    Raises:
        CannotWrapError: the dataset could not be loaded.
    """
    from tenacity import RetryError

    from lmms_patch.harness.names import facts
    from lmms_patch.harness.wrap.calls import one_line

    try:
        yield
    except (RetryError, OSError) as error:
        config = name_or_config if isinstance(name_or_config, Mapping) else {}
        name = str(config.get("task") if config else name_or_config)
        row = manager.task_index.get(name, {})
        # raised by the code of a YAML task: its traceback says more than our line
        if isinstance(error, OSError) and row.get("type") != "python_task":
            raise
        given = config.get("dataset_path") or (facts.read(manager, name).get("dataset_path") if row else None)
        dataset = f"its dataset {given}" if given else "its data"
        raise CannotWrapError(
            f"{name}: {dataset} could not be loaded: {one_line(error).rstrip('.')}; type 'lmms-eval --tasks {name} ...' to see where"
        ) from None


def _load_wrapped(
    manager: Any, native: Callable[..., Any], spec: WrapSpec, changes: Mapping[str, Any]
) -> dict[Any, Any]:
    """Load the base of a spec, and wrap its tasks."""
    from lmms_patch.harness.names import configs

    patch_runs()
    configs.check(manager, spec)
    text_only = not spec.kind.needs_image
    # the videos of a benchmark can be hundreds of gigabytes, and a view without any image needs only the rows
    if text_only:
        changes = {**configs.without_videos(manager, spec.base), **changes}
    # while a base is loaded, this says whether its members go without their videos
    before, manager._lmms_patch_text_only = getattr(manager, "_lmms_patch_text_only", None), text_only
    try:
        # no parent's name: with one, the host would rename a base that is wrapped twice
        loaded = native(spec.base, update_config=changes or None, parent_name=None)
    finally:
        manager._lmms_patch_text_only = before
    return _mend_groups(_wrap_all(loaded, spec))


def _spec_of(manager: Any, name_or_config: Any) -> tuple[WrapSpec | None, dict[str, Any]]:
    """Return what to wrap, and the config overrides given with the name.

    The spec is None where the host is asked for something that is not ours.
    """
    from lmms_patch.harness.names import configs

    if isinstance(name_or_config, str):
        return configs.resolve(manager, name_or_config), {}
    if isinstance(name_or_config, Mapping) and isinstance(name_or_config.get("task"), str):
        explicit = configs.explicit_spec(name_or_config) if "class" in name_or_config else None
        if explicit is not None:
            configs.require_base(manager, explicit)
            return explicit, {}
        if set(name_or_config).isdisjoint({"dataset_path", "class", "include"}):
            overrides = {k: v for k, v in name_or_config.items() if k != "task"}
            return configs.resolve(manager, name_or_config["task"]), overrides
    return None, {}


def _wrap_all(loaded: Mapping[Any, Any], spec: WrapSpec) -> dict[Any, Any]:
    """Wrap every loaded task: a single task, the tasks of a tag, or groups of groups."""
    from lmms_patch.harness.wrap.task import WrappedTask

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
    """Give a loaded group its wrapped name (docs/design/group-names.md)."""
    if isinstance(group, str):
        return
    config = group._config
    suffix = name.removeprefix(config.group or "")
    config.group = name
    if config.group_alias:
        config.group_alias += suffix


def _mend_groups(loaded: Mapping[Any, Any]) -> dict[Any, Any]:
    """Make groups with wrapped tasks pool only the listed metrics, and survive a missing number.

    The host pools each metric whose ``name,filter`` *contains* the listed name: ``acc`` would also pool ``acc_mpp3``,
    while ``acc,none`` does not. And the host adds the members' numbers, which ends the run where one of them is None.
    """
    from lmms_patch.harness.wrap.task import WrappedTask

    for group, members in loaded.items():
        if not isinstance(members, Mapping):
            continue
        _mend_groups(members)
        tasks = list(_tasks_in(members))
        # the pooled name must be whole, filter included
        filters = {ensemble.name for task in tasks for ensemble in task._filters}
        if (
            any(isinstance(task, WrappedTask) for task in tasks)
            and not isinstance(group, str)
            and group._config.aggregate_metric_list is not None
        ):
            group._config.aggregate_metric_list = [
                dataclasses.replace(
                    entry,
                    metric=f"{entry.metric.partition(',')[0]},{name}",
                    filter_list=[name],
                    aggregation=functools.partial(_pool, entry.aggregation),
                )
                for entry in {e.metric.partition(",")[0]: e for e in group._config.aggregate_metric_list}.values()
                for name in sorted(filters)
            ]
    return dict(loaded)


def _tasks_in(members: Mapping[Any, Any]) -> Iterator[Any]:
    """Yield the tasks inside groups of groups."""
    for member in members.values():
        if isinstance(member, Mapping):
            yield from _tasks_in(member)
        else:
            yield member


def _pool(aggregation: Any, metrics: list[Any], sizes: list[int], weight_by_size: bool) -> Any:
    """Pool the members' numbers as the host does; return None where a number is missing or pooling fails.

    Around the aggregation of a nested group it stands once for each group around that, which does no harm.
    """
    from lmms_eval.api.metrics import aggregate_subtask_metrics

    from lmms_patch.runs.scoring import scalar

    values = [None if isinstance(value, bool) else scalar(value) for value in metrics]
    if None in values:
        return None
    try:
        pool = aggregation if callable(aggregation) else aggregate_subtask_metrics
        return pool(values, sizes, weight_by_size)
    except Exception as error:
        log().warning(f"a group's aggregation failed: {type(error).__name__}: {error}")
        return None


def _is_leaf(manager: Any, name_or_config: Any) -> bool:
    """Return whether this is a task, and not a group or tag of tasks."""
    if isinstance(name_or_config, str):
        return manager.task_index.get(name_or_config, {}).get("type") in ("task", "python_task")
    return isinstance(name_or_config, Mapping) and isinstance(name_or_config.get("task"), str)


# --- what is replaced in a run with a task of ours ------------------------------------------------


def patch_runs() -> None:
    """Replace what a run with a task of ours needs replaced.

    A run without one is left as it is, and a second call changes nothing.

    Raises:
        HostError: the installed host lacks a function that we replace or call.
    """
    from lmms_eval import utils

    from lmms_patch.harness.asking import seam

    replaced: dict[str, dict[str, Callable[..., Any]]] = {
        "ResponseCache": {"_store": _store},
        # the command line, Python and the job server all call ``evaluate``, when the model is loaded and all tasks are known
        "lmms_eval.evaluator": {"unwrap_generation_output": _unwrap, "evaluate": seam.evaluate},
        "ChatMessages": {"encode_image": _encode},
        "EvaluationTracker": {"save_results_aggregated": _save_results},
        "WandbLogger": {"post_init": _to_tracker},
        "SwanLabLogger": {"post_init": _to_tracker},
    }
    for owner, functions in zip(compat.check_host(*replaced, *compat.CALLED), replaced.values(), strict=False):
        for name, function in functions.items():
            _patch(owner, name, function)
    # of the command line: neither is there, or has the function, in a run from Python
    for name in ("__main__", "lmms_eval.__main__"):
        if getattr(module := sys.modules.get(name), "make_table", None) is utils.make_table:
            _patch(module, "make_table", _last_screen)


@functools.cache
def _tell_of_frames() -> None:
    log().warning(
        "lmms-eval sends some frames of a video in place of others where it asks a server; in this run each frame is sent as itself, "
        "so the full clip may score otherwise than in a run of the base task alone (docs/footguns.md)"
    )


def _encode(
    original: Callable[..., str], messages: Any, image: Any, cache: Any = None, *args: Any, **kwargs: Any
) -> str:
    """Encode an image anew, and warn once where the host would have sent an earlier image instead.

    Why: lmms-eval 0.7.3 keeps encoded images by their address in memory. The frames of a video are freed one by one, so
    a later frame lies at the address of an earlier one, and the earlier one is sent again in its place. A path is encoded
    as the host does.
    """
    if cache is None or isinstance(image, str):
        return original(messages, image, cache, *args, **kwargs)
    encoded = original(messages, image, None, *args, **kwargs)
    # the host's key for this image: where it holds another picture, the host would have sent that picture
    if cache.setdefault(("obj", id(image)), encoded) != encoded:
        _tell_of_frames()
    return encoded


def _own_date(folder: Path, date: str) -> str:
    """Return a run's date, or the next second free in the folder, and make its results file: all files are named by the date."""
    with contextlib.suppress(OSError, ValueError):
        folder.mkdir(parents=True, exist_ok=True)
        while True:
            name = date.replace(":", "-")
            with contextlib.suppress(FileExistsError):
                if not any(folder.glob(f"{name}_samples_*")):
                    (folder / f"{name}_results.json").open("x").close()
                    return date
            date = (datetime.strptime(date, compat.DATE) + timedelta(seconds=1)).strftime(compat.DATE)
    return date


def _save_results(original: Callable[..., Any], tracker: Any, results: Any, samples: Any, datetime_str: str) -> None:
    """Write the tables of our tasks, and then the results file as the host does.

    Why this method: the host calls it on the first rank alone, once for each run, and nothing of ours is called between
    it and ``evaluate``.
    """
    from lmms_patch.harness import written

    if not tracker.output_path:
        original(tracker, results, samples, datetime_str)
        return
    # the host puts these among its results only while it writes them; our tables are written before
    about = tracker.general_config_tracker
    about.log_end_time()
    folder = Path(tracker.output_path, about.model_name_sanitized)
    date = _own_date(folder, datetime_str)
    results.update(dataclasses.asdict(about), date=date)
    path = folder / f"{date.replace(':', '-')}_results.json"
    written.save(lambda filed: original(tracker, filed, samples, date), results, path)


def _to_tracker(original: Callable[..., Any], logger: Any, results: dict[str, Any]) -> Any:
    """Hand an experiment tracker the main numbers of our tasks, and the sentences to know first of each.

    Why this method: the host calls it once for each run, and all that the tracker logs of results is made of what it is
    given here.
    """
    from lmms_patch.harness import written
    from lmms_patch.present.findings import said_of

    return original(logger, written.for_tracker(results, said_of))


def _last_screen(
    original: Callable[..., str], results: dict[str, Any], column: str = "results", *args: Any, **kwargs: Any
) -> str:
    """Make the table at the end of a run, with few numbers of our tasks, and add what the run found.

    Why this function: its text is the last that the host prints, on the first rank alone. Where there are groups, their
    table is the last.
    """
    from lmms_patch.harness import written
    from lmms_patch.present.findings import said_of

    table = original(written.for_screen(results) if column == "results" else results, column, *args, **kwargs)
    return table if column == "results" and "groups" in results else f"{table}\n{written.ending(results, said_of)}"


def _store(original: Callable[..., Any], cache: Any, *args: Any, **kwargs: Any) -> None:
    """Store an answer, unless the call failed or the model saw a grey image in place of a missing image.

    Why this method: the host judges a response by its text alone. Here we also know the adapter, the task and the doc.
    """
    from lmms_patch.harness.wrap.session import was_shown

    stored = inspect.signature(original).bind(cache, *args, **kwargs).arguments
    # the cache's fingerprint is ``model|arguments``
    adapter = compat.adapter_of(str(cache.model_fingerprint).partition("|")[0])
    if not compat.failure(stored["response"], adapter) and was_shown(stored["task_name"], stored["doc_id"]):
        original(cache, *args, **kwargs)


def _unwrap(original: Callable[..., Any], output: Any) -> Any:
    """Return the text of a model's output: fit for a file, and marked as ``NoText`` where the output is None.

    Why this function: the host turns None into the text "None" here. Later, nothing tells it from a model that answers
    "None". And half a surrogate pair, as byte-level tokenizers give it, ends the host's log at that line.
    """
    from lmms_patch import files

    text, counts = original(output)
    if isinstance(text, str) and not text.isascii():
        text = files.writable(text)
    return (compat.NoText(text), counts) if output is None else (text, counts)
