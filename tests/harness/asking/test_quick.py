"""Runs that leave views out, through the real evaluator: what is asked, what is written down, and that no number differs from a full run's."""

import json
import threading
from argparse import Namespace
from functools import cache

import pytest

from lmms_patch.ask.spec import Options
from lmms_patch.errors import CannotWrapError, OptionError
from lmms_patch.harness.asking import rounds as ranks
from lmms_patch.harness.asking.rounds import Ranks
from lmms_patch.harness.names.configs import with_environment
from tests.harness import toys
from tests.harness.askers import (
    Gathering,
    Killed,
    PerRequestK,
    asker_of,
    clue,
    without_kept,
)
from tests.harness.toys import metrics, rows, write_task
from tests.making.docs import as_json
from tests.sizes import size

DOCS = 120
"""Docs of tests in which it does not matter how many views a run leaves out."""
NULL = 10
OPTIONS = {"null": NULL, "pilot": 20, "precision": 0.15}
PORTION = 32


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks")
    write_task(folder, "toy", rows(DOCS), metadata={"lmms_patch": OPTIONS})
    write_task(
        folder, "grouped", rows(DOCS, sheet=lambda i: i // 4), metadata={"lmms_patch": {**OPTIONS, "cluster": "sheet"}}
    )
    for name, more in (
        ("some", {"exit": True}),
        ("scaled", {"exit": True, "scale": 2}),
        ("both", {"quick": True, "grids": [2, 3]}),
    ):
        text = "\n".join(
            f"{key}: {value}" for key, value in {"task": f"toy_{name}", "base": "toy", "grids": [3], **more}.items()
        )
        (folder / f"toy_{name}.yaml").write_text(f"{text}\nclass: !function lmms_patch.Wrap\n")
    return folder


def asked_in(folder, model, tasks, names="toy_rci3_quick", /, **options):
    cli = Namespace(
        output_path=str(folder),
        process_with_media=False,
        reasoning_tags=None,
        model=type(model).__name__,
        model_args="",
        batch_size=1,
    )
    vars(cli).update(options)
    return without_kept(toys.run(model, names, tasks, cli_args=cli))


@cache
def undisturbed(tasks, name="toy_rci3_quick"):
    """Run a task once for all tests here: what comes out, and the model that was asked."""
    return asked_in(tasks.with_name(f"{tasks.name}_{name}"), model := PerRequestK(), tasks, name), model


def records(found, task="toy_rci3_quick"):
    return {one["patch"]["doc_id"]: one["patch"] for one in found["samples"][task]}


def said(found):
    return json.dumps([found["results"], found["samples"]], sort_keys=True, default=str)


# --- early exit ---------------------------------------------------------------------------------------


def test_early_exit_gives_the_numbers_of_a_full_run(tasks, tmp_path):
    full, every = undisturbed(tasks, "toy_rci3")
    part = asked_in(tmp_path, some := PerRequestK(), tasks, "toy_some")
    assert len(some.asked) < 0.95 * len(every.asked)
    assert len(set(some.asked)) == len(some.asked)
    ours, theirs = metrics(part, "toy_some"), metrics(full, "toy_rci3")
    names = ("exact_match", "exact_match_mpp3", "rci3", "gap3", "chance", "gate")
    assert {name: ours[name] for name in names} == {name: theirs[name] for name in names}
    for doc_id, record in records(part, "toy_some").items():
        whole = records(full, "toy_rci3")[doc_id]
        own = [view for view in whole["views"] if view in record["views"]]
        assert own == record["views"]
        assert len(record["views"]) + record["asked"].get("unasked", 0) == 10
        best, kept = (one["views"][one["best"]["3"]]["scores"]["exact_match"] for one in (whole, record))
        assert best == kept
    pilot = [one for one in records(part, "toy_some").values() if one["asked"]["block"] == 0]
    assert len(pilot) == OPTIONS["pilot"]
    assert all(len(one["views"]) == 10 for one in pilot)


# --- quick --------------------------------------------------------------------------------------------


def test_where_every_gold_earns_less_than_the_stated_scale_every_cell_is_asked(tasks, tmp_path):
    """Golds earn 1 of 2: a right cell need not be the best."""
    asked_in(tmp_path, some := PerRequestK(), tasks, "toy_scaled")
    assert len(some.asked) == len(undisturbed(tasks, "toy_rci3")[1].asked)


def test_a_quick_run_asks_less_and_says_how(tasks):
    full, every = undisturbed(tasks, "toy_rci3")
    part, some = undisturbed(tasks)
    assert len(some.asked) < 0.7 * len(every.asked)
    found, whole = metrics(part, "toy_rci3_quick"), metrics(full, "toy_rci3")
    details = part["results"]["toy_rci3_quick"]["patch,none"]
    grid = details["analysis"]["grids"]["3"]
    assert grid["full_pass"]["low"] <= whole["rci3"] <= grid["full_pass"]["high"]
    assert grid["full_pass"]["high"] - grid["full_pass"]["low"] <= 2 * OPTIONS["precision"] + 1e-9
    assert grid["index"]["low"] <= grid["full_pass"]["low"]
    assert grid["index"]["high"] >= grid["full_pass"]["high"]
    assert abs(found["exact_match"] - whole["exact_match"]) < 0.15
    assert found["exact_match"] == pytest.approx(details["analysis"]["fip"]["value"])
    assert found["chance"] == whole["chance"], "chance rests on all docs, whatever was asked"
    asked = details["analysis"]["asked"]
    own = [(doc, view) for _, doc_and_view, view in some.asked for doc in [doc_and_view // (10 + 1)] if view < 10]
    assert (asked["calls"], asked["of"], asked["docs"]) == (len(own), 10 * DOCS, len({doc for doc, _ in own}))
    patches = records(part)
    assert len(patches) == DOCS, "every doc has a line, also one of which nothing was asked"
    for doc_id, patch in patches.items():
        how = patch["asked"]
        assert (
            len(patch["views"]) * (how["steps"] > 0)
            + how["unasked" if "unasked" in how else "block"] * ("unasked" in how)
            == 10
        )
        assert (
            sorted(view for doc, view in own if doc == doc_id) == [0, *range(1, 10)][: len(patch["views"])]
            or how["steps"] != 1
        )
    none = next(one for one in patches.values() if one["asked"]["steps"] == 0)
    assert none["views"] == [{"kind": "full", "scores": {}, "items": {}}]
    assert "best" not in none or none["best"] == {}


def test_a_killed_run_asks_the_same_views_and_none_twice(tasks, tmp_path):
    whole, first = undisturbed(tasks)
    seen = []
    for lives in (7, 150, 90, 60):
        with pytest.raises(Killed):
            asked_in(tmp_path, dying := PerRequestK(lives), tasks)
        seen.append(dying.asked)
    again = asked_in(tmp_path, survivor := PerRequestK(), tasks)
    assert said(again) == said(whole)
    every = [request for part in (*seen, survivor.asked) for request in part]
    assert set(every) == set(first.asked)
    assert len(every) - len(first.asked) <= PORTION * len(seen)


def test_ranks_ask_what_one_process_asks(tasks, monkeypatch):
    """Two and three ranks, as threads: together they ask the same views, and each record is the same."""
    alone, first = undisturbed(tasks)
    wanted = records(alone)
    described = {**alone["configs"]["toy_rci3_quick"]["lmms_patch"], "task": "toy_rci3_quick"}
    for world in size((2,), (2, 3)):
        gathering, asked, found = Gathering(world), {}, {}
        monkeypatch.setattr(ranks, "_distributed", lambda gathering=gathering: gathering)
        monkeypatch.setattr(
            Ranks, "here", classmethod(lambda cls, gathering=gathering, world=world: cls(gathering.local.number, world))
        )

        def work(number, gathering=gathering, world=world, asked=asked, found=found):
            from lmms_patch.harness.names.catalog import task_manager

            gathering.local.number = number
            task = task_manager(tasks).load_task_or_group(["toy_rci3_quick"])["toy_rci3_quick"]
            model = PerRequestK()
            model.task_dict["toy_rci3_quick"] = task.dataset
            task.build_all_requests(limit=None, rank=number, world_size=world)
            cli = Namespace(batch_size=1, model="m", model_args="", reasoning_tags=None, process_with_media=False)
            asker = asker_of({"toy_rci3_quick": task}, cli)
            requests = list(task.instances)
            for request, answer in zip(requests, asker.execute(model, "generate_until", requests), strict=True):
                request.resps.append(answer)
            task.apply_filters()
            by_doc = {}
            for request in task.instances:
                by_doc.setdefault(request.doc_id, []).append(request.filtered_resps["none"])
            asked[number] = model.asked
            records = [
                task.process_results(task.eval_docs_no_media[doc_id], got)["patch"].doc
                for doc_id, got in by_doc.items()
            ]
            found[number] = {one.doc_id: as_json(one, described) for one in records}

        threads = [threading.Thread(target=work, args=(number,)) for number in range(world)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert len(found) == world, "no rank waits for ever"
        assert {one for part in asked.values() for one in part} == set(first.asked)
        assert len({len(part) for part in asked.values()}) == 1, "each rank calls its model equally often"
        together = {doc_id: patch for part in found.values() for doc_id, patch in part.items()}
        assert together == wanted


def test_clusters_grids_and_kinds(tasks, tmp_path):
    found = asked_in(tmp_path, PerRequestK(), tasks, "grouped_pcri3_quick,toy_both")
    blocks = {}
    for patch in records(found, "grouped_pcri3_quick").values():
        blocks.setdefault(patch["fields"]["cluster"], set()).add(patch["asked"]["block"])
    assert all(len(of) == 1 for of in blocks.values())
    assert {"pcri3", "exact_match"} <= set(metrics(found, "grouped_pcri3_quick"))
    both = found["results"]["toy_both"]["patch,none"]["analysis"]["grids"]
    assert set(both) == {"2", "3"}
    assert all(grid["full_pass"]["low"] is not None for grid in both.values())


# --- refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "options", "told"),
    [
        (
            {},
            {"budget": 100},
            "a budget of 100 calls is too small: 20 docs asked whole are 200 calls, and those on wrong images 10",
        ),
        (
            {"filter_list": [{"name": n, "filter": [{"function": "take_first"}]} for n in ("a", "b")]},
            {},
            "2 ways (filters)",
        ),
        (
            {"metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": False}]},
            {},
            "lower exact_match is better",
        ),
        (
            {
                "metric_list": [
                    {"metric": "exact_match", "aggregation": "!function utils.middle", "higher_is_better": True}
                ]
            },
            {},
            "no mean of docs' scores",
        ),
    ],
    ids=["budget", "filters", "lower", "median"],
)
def test_what_cannot_be_asked_in_part_is_refused_before_any_call(tmp_path, config, options, told):
    (tmp_path / "utils.py").write_text("import statistics\n\ndef middle(items):\n    return statistics.median(items)\n")
    write_task(tmp_path, "toy", rows(40), metadata={"lmms_patch": {**OPTIONS, **options}}, **config)
    with pytest.raises((CannotWrapError, OptionError, SystemExit)) as error:
        asked_in(tmp_path / "out", model := PerRequestK(), tmp_path)
    assert told in str(getattr(error.value, "__context__", "")) + str(error.value)
    assert not model.asked


def test_the_environment_sets_what_the_command_line_cannot():
    quick = Options(quick=True, pilot=7)
    env = {
        "LMMS_PATCH_PRECISION": "0.05",
        "LMMS_PATCH_BUDGET": "2000",
        "LMMS_PATCH_TARGET": "population",
        "LMMS_PATCH_PILOT": " ",
    }
    made = with_environment(quick, env)
    assert (made.precision, made.budget, made.target, made.pilot) == (0.05, 2000, "population", 7)
    assert with_environment(Options(), env) == Options(), "of runs that ask everything it says nothing"
    with pytest.raises(
        OptionError, match=r"LMMS_PATCH_PRECISION.*precision must be a number above 0 and below 1, not 'wide'"
    ):
        with_environment(quick, {"LMMS_PATCH_PRECISION": "wide"})


def test_failed_calls_cost_their_docs_and_are_asked_again(tasks, tmp_path):
    """A server that dies in the middle of the run, and is there again for the same command."""
    first = PerRequestK()
    first.answer = lambda prompt, images: (
        clue(prompt, images) if len(first.asked) <= 200 else "[LMMS_EVAL_REQUEST_FAILED after 5 retries] gone"
    )
    broken = asked_in(tmp_path, first, tasks)
    assert broken["results"]["toy_rci3_quick"]["patch,none"]["analysis"]["failed"]["calls"] > 0
    again = asked_in(tmp_path, survivor := PerRequestK(), tasks)
    assert said(again) == said(undisturbed(tasks)[0])
    assert not set(survivor.asked) & set(first.asked[:200])


# --- what other numbers may be made of a part ---------------------------------------------------------


@pytest.mark.parametrize("target", ["population", "benchmark"])
def test_a_population_of_few_images_is_refused_and_the_benchmark_is_not(target, tasks, tmp_path, monkeypatch):
    monkeypatch.setenv("LMMS_PATCH_TARGET", target)
    write_task(tmp_path, "toy", [row | {"image_id": int(i > 30) * i} for i, row in enumerate(rows(40))],
               metadata={"lmms_patch": {**OPTIONS, "cluster": "image_id"}})  # fmt: skip
    model = PerRequestK()
    if target == "benchmark":
        asked_in(tmp_path / "out", model, tmp_path)
        return
    with pytest.raises((OptionError, SystemExit)) as error:
        asked_in(tmp_path / "out", model, tmp_path)
    assert "10 clusters of docs, by their sizes worth 1.6, are too few" in str(
        getattr(error.value, "__context__", "")
    ) + str(error.value)
    assert not model.asked
