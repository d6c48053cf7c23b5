"""``lmms-patch init``: what it writes is read by whom it is for: the gate, GitHub, lmms-eval."""

import json
import math
import re
import shlex
import shutil
import subprocess
import sys
import types
from importlib import metadata

import jsonschema
import pytest
import yaml
from lmms_eval import __main__ as host

from lmms_patch import __version__
from lmms_patch.app import api, api_init, schemas
from lmms_patch.app.cli import main
from lmms_patch.ask.spec import Options, from_file
from lmms_patch.errors import OptionError, RecordError
from lmms_patch.gate import derive
from lmms_patch.stats.resample import Estimate
from tests.harness.toys import Model, metrics, rows, run, write_task
from tests.making.runs import failing, knows, never_looks, one_cell_knows, views_run, world_run, write_run
from tests.making.tst import write_tst
from tests.places import ROOT
from tests.sizes import size

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
CONFIG = {"model": "qwen2_5_vl", "model_args": "pretrained=org/seven,api_key=sk-0123456789abcdef", "limit": None}
TYPED = {
    "tasks": "toy_rci3,blind_blind",
    "batch_size": "8",
    "num_fewshot": None,
    "gen_kwargs": "temperature=0",
    "log_samples": True,
}


def written(folder, tasks, **config):
    return write_run(folder, tasks, model_name="org/seven", config={**CONFIG, "resolved_cli_args": {**TYPED, **config}})


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of a benchmark where one cell is enough, of one that can be answered blindly, and of one without images."""
    made = {
        "toy_rci3": world_run(one_cell_knows, n=120, grid=3),
        "text_rci3": world_run(never_looks, n=120, grid=3, base="text"),
        "blind_blind": views_run("blind", [0.4], n=40, base="blind"),
    }
    return written(tmp_path_factory.mktemp("run"), made)


# --- gate -------------------------------------------------------------------------------------------------


def test_the_run_passes_the_gate_that_was_made_of_it(finished, tmp_path, capsys):
    assert (
        main(["init", "gate", str(finished.parent), "--output", str(tmp_path), "--action", "owner/lmms-patch@v1"]) == 0
    )
    printed = capsys.readouterr().out.splitlines()
    gates = tmp_path / "gates.yaml"
    assert printed[:2] == [f"written: {gates}", f"written: {tmp_path / '.github' / 'workflows' / 'lmms-patch.yml'}"]
    assert printed[-1] == f"next: lmms-patch gate {finished.parent} --config {gates}"
    assert main(shlex.split(printed[-1].removeprefix("next: "))[1:]) == 0
    jsonschema.validate(yaml.safe_load(gates.read_text()), schemas.load("gate-config"))
    rules = {rule["name"]: rule for rule in yaml.safe_load(gates.read_text())["rules"]}
    assert {
        "toy_rci3: acc",
        "toy_rci3: rci3",
        "toy_rci3: the answers depend on the image",
        "toy_rci3: no fewer docs",
    } <= set(rules)
    assert "text_rci3: the answers depend on the image" not in rules
    assert (
        "# left out, because that run does not pass it: text_rci3: the answers depend on the image: "
        in gates.read_text()
    )
    assert rules["toy_rci3: no fewer docs"]["min_docs"] == 119, "one of 120 docs may be lost: 1 %, as of any number"


def test_the_limits_are_the_interval_and_the_margin_is_its_reach(finished):
    data = json.loads(finished.read_text())["results"]["toy_rci3"]["patch,none"]["analysis"]["fip"]
    rule = next(one for one in yaml.safe_load(derive.derive(finished).text)["rules"] if one["name"] == "toy_rci3: acc")
    assert data["low"] - 0.002 < rule["min"] <= data["low"]
    assert 0 <= rule["margin"] - (data["value"] - data["low"]) < 0.002
    assert "max" not in rule


def test_failed_calls_may_lose_one_doc_in_a_hundred(tmp_path):
    """Of 300 docs three may fail; the run at hand, of which two failed, sets the same limit as a whole one."""
    count = size(200, 300)
    made, may = world_run(one_cell_knows, n=count, grid=2), count // 100

    def failed(name, docs):
        return written(tmp_path / name, {"toy_rci2": (made[0], failing(made[1], range(docs)), made[2])})

    for base, lost in (("whole", 0), ("some", may - 1)):
        config = yaml.safe_load(derive.derive(failed(base, lost)).text)
        config["rules"] = [rule for rule in config["rules"] if "min_docs" in rule]
        assert [rule["min_docs"] for rule in config["rules"]] == [count - may]
        assert [api.gate(failed(f"{base}{docs}", docs), config).status for docs in (0, may, may + 1)] == [0, 0, 1]


def test_a_worse_run_fails_and_an_equal_one_passes(finished, tmp_path):
    gates = tmp_path / "gates.yaml"
    gates.write_text(derive.derive(finished).text)
    config = yaml.safe_load(gates.read_text())
    config["rules"] = [rule for rule in config["rules"] if rule["task"] == "toy_rci3" and "min_docs" not in rule]
    again = written(tmp_path / "again", {"toy_rci3": world_run(one_cell_knows, n=120, grid=3, answers=1)})
    worse = written(tmp_path / "worse", {"toy_rci3": world_run(knows(0.3, 0.3), n=120, grid=3)})
    assert api.gate(again, config).status == 0
    verdicts = {one.rule: one.call for one in api.gate(worse, config).verdicts}
    assert verdicts["toy_rci3: acc"] == "fail"


@pytest.mark.parametrize(
    ("value", "low", "high", "limits"),
    [
        (0.8, 0.7234, 0.8561, {"min": 0.723, "max": 0.857, "margin": 0.077}),
        (-0.1, -0.1506, -0.0222, {"min": -0.151, "max": -0.022, "margin": 0.078}),
        (62.0, 58.66, 65.2, {"min": 58.6, "max": 65.2, "margin": 3.4}),
        (412.0, 380.3, 450.2, {"min": 380.0, "max": 451.0, "margin": 39.0}),
        (0.5, 0.5, 0.5, {"min": 0.5, "max": 0.5, "margin": 0.0}),
    ],
)
def test_limits_are_rounded_away_from_the_number(value, low, high, limits):
    made, _ = derive._limits(Estimate(value, 0.1, low, high, 100, 100, 1000), low=True, high=True)
    assert made == pytest.approx(limits)
    assert made["min"] <= low
    assert made["max"] >= high
    assert made["margin"] >= max(value - low, high - value) - 1e-12


def test_a_number_without_an_interval_gives_no_limit():
    assert derive._limits(Estimate(0.8, None, None, None, 5, 5, 0), low=True, high=True) is None
    assert derive._limits(None, low=True, high=True) is None


def test_how_often_a_redrawn_run_passes_is_what_the_page_says():
    """Φ(1.96 / √2), by drawing pairs of runs."""
    import numpy as np

    stream = np.random.default_rng(0)
    first, second = stream.normal(0, 1, (2, 200_000))
    passes = second - 1.96 >= first - 2 * 1.96
    assert passes.mean() == pytest.approx(0.5 * (1 + math.erf(1.96 / 2)), abs=0.004)
    assert "= 0.92" in derive.__doc__
    assert passes.mean() == pytest.approx(0.92, abs=0.004)


def test_a_text_only_run_must_not_answer_more(tmp_path):
    path = write_tst(tmp_path)
    rule = next(one for one in yaml.safe_load(derive.derive(path).text)["rules"] if one.get("metric") == "tst")
    assert "max" in rule
    assert "min" not in rule


def test_a_part_of_a_benchmark_is_allowed_for_and_said(tmp_path):
    path = write_run(tmp_path, {"toy_rci3": world_run(one_cell_knows, n=60, grid=3)}, config={**CONFIG, "limit": 60})
    made = derive.derive(path)
    assert yaml.safe_load(made.text)["defaults"]["allow_limit"] is True
    assert api.gate(path, yaml.safe_load(made.text)).status == 0


def test_several_models_have_rules_of_their_own(tmp_path):
    write_run(tmp_path / "a", {"toy_rci3": world_run(one_cell_knows, n=60, grid=3)}, model_name="org/a")
    write_run(tmp_path / "b", {"toy_rci3": world_run(one_cell_knows, n=60, grid=3, answers=1)}, model_name="org/b")
    rules = yaml.safe_load(derive.derive(tmp_path).text)["rules"]
    assert {rule["model"] for rule in rules} == {"org/a", "org/b"}
    assert len({rule["name"] for rule in rules}) == len(rules)


def test_no_run_is_one_line(tmp_path, capsys):
    assert main(["init", "gate", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(RecordError, match=r"no \*_results\.json here"):
        derive.derive(tmp_path)


# --- the workflow -----------------------------------------------------------------------------------------


@pytest.fixture
def jobs(finished, tmp_path):
    api.init.gate(finished.parent, output=tmp_path, action="owner/lmms-patch@v0.1.0", runner="gpu")
    text = (tmp_path / ".github" / "workflows" / "lmms-patch.yml").read_text()
    return text, yaml.load(text, Loader=yaml.BaseLoader)  # 'on' stays a text, as GitHub reads it


def test_the_workflow_has_what_the_action_asks_for_and_nothing_else(jobs):
    _, found = jobs
    (step,) = [one for one in found["jobs"]["gate"]["steps"] if one.get("uses", "").startswith("owner/")]
    assert step["uses"] == "owner/lmms-patch@v0.1.0"
    assert set(step["with"]) <= set(ACTION["inputs"])
    assert {name for name, one in ACTION["inputs"].items() if one.get("required")} <= set(step["with"])


def test_each_file_that_a_step_reads_is_there_by_then(jobs):
    _, found = jobs
    assert set(found["on"]) == {"pull_request", "workflow_dispatch"}
    assert found["permissions"] == {"contents": "read"}
    assert found["jobs"]["evaluate"]["runs-on"] == "gpu"
    assert found["jobs"]["gate"]["needs"] == "evaluate"
    uses = [one.get("uses", "").partition("@")[0] for one in found["jobs"]["gate"]["steps"]]
    assert uses.index("actions/setup-python") < uses.index("actions/checkout") < uses.index("owner/lmms-patch")
    steps = {one.get("uses", "").partition("@")[0]: one.get("with", {}) for one in found["jobs"]["gate"]["steps"]}
    given = steps["owner/lmms-patch"]
    assert given["config"] == f"{steps['actions/checkout']['path']}/{api_init.GATES}", (
        "the rules of the branch that is merged into"
    )
    assert given["out"] == steps["actions/download-artifact"]["path"]
    upload = next(one["with"] for one in found["jobs"]["evaluate"]["steps"] if "upload" in one.get("uses", ""))
    assert upload["name"] == steps["actions/download-artifact"]["name"]
    written_there = {ACTION["inputs"][name]["default"] for name in ("json", "junit")}
    assert set(steps["actions/upload-artifact"]["path"].split()) == written_there


def test_the_evaluation_is_the_command_of_the_run_without_its_secret(jobs, monkeypatch):
    """Read by the host's own parser."""
    text, found = jobs
    (command,) = [
        one["run"] for one in found["jobs"]["evaluate"]["steps"] if one.get("run", "").startswith("lmms-eval ")
    ]
    assert "sk-0123456789abcdef" not in text
    monkeypatch.setattr(sys, "argv", shlex.split(command))
    _, asked = host.parse_eval_args()
    assert (asked.model, asked.tasks, asked.batch_size, asked.gen_kwargs) == (
        "qwen2_5_vl",
        "toy_rci3,blind_blind",
        "8",
        "temperature=0",
    )
    assert (asked.output_path, asked.log_samples, asked.limit) == ("out/new", True, None)
    (install,) = [one["run"] for one in found["jobs"]["evaluate"]["steps"] if one.get("run", "").startswith("pip ")]
    assert shlex.split(install) == [
        "pip",
        "install",
        "lmms-patch[all] @ git+https://github.com/owner/lmms-patch@v0.1.0",
    ]


def test_nothing_in_a_run_becomes_an_expression_or_a_line_of_the_workflow(tmp_path):
    evil = written(
        tmp_path / "a", {"toy_rci3": world_run(one_cell_knows, n=60, grid=3)}, gen_kwargs="x=${{ secrets.TOKEN }}"
    )
    with pytest.raises(OptionError, match="GitHub would replace it"):
        api.init.gate(evil, output=tmp_path / "made", action="o/p@v1")
    assert not (tmp_path / "made").exists(), "no file is left of it"
    lines = written(
        tmp_path / "b", {"toy_rci3": world_run(one_cell_knows, n=60, grid=3)}, gen_kwargs='x="\n      - run: echo owned'
    )
    api.init.gate(lines, output=tmp_path / "made", action="o/p@v1")
    found = yaml.safe_load((tmp_path / "made" / ".github" / "workflows" / "lmms-patch.yml").read_text())
    runs = [one["run"] for one in found["jobs"]["evaluate"]["steps"] if "run" in one]
    assert len(runs) == 2
    assert shlex.split(runs[1])[-1] == 'x="\n      - run: echo owned'


def installed(monkeypatch, about):
    noted = None if about is None else json.dumps(about)
    monkeypatch.setattr(
        api_init.metadata, "distribution", lambda name: types.SimpleNamespace(read_text=lambda file: noted)
    )


COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("about", "action"),
    [
        (
            {"url": "https://github.com/owner/lmms-patch.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}},
            f"owner/lmms-patch@{COMMIT}",
        ),
        (
            {"url": "ssh://git@github.com/owner/lmms-patch", "vcs_info": {"vcs": "git", "commit_id": COMMIT}},
            f"owner/lmms-patch@{COMMIT}",
        ),
        ({"url": "https://gitlab.com/owner/lmms-patch.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}}, None),
        ({"url": "file:///home/me/lmms-patch", "dir_info": {}}, None),
        ({"url": "file:///home/me/lmms_patch-0.1.0-py3-none-any.whl", "archive_info": {}}, None),
        ({}, None),
        (None, f"lmms-patch=={__version__}"),
    ],
)
def test_where_the_action_lies_is_what_pip_noted(monkeypatch, about, action):
    installed(monkeypatch, about)
    assert api_init.installed_from() == action


@pytest.mark.parametrize(("pushed", "action"), [("origin/main", f"owner/lmms-patch@{COMMIT}"), ("", None)])
def test_of_a_checkout_it_is_the_remote_that_has_the_commit(monkeypatch, pushed, action):
    installed(monkeypatch, {"url": "file:///x", "dir_info": {"editable": True}})
    said = {"remote": "git@github.com:owner/lmms-patch.git", "rev-parse": COMMIT, "branch": pushed}
    monkeypatch.setattr(api_init, "_git", lambda folder, *words: said[words[0]])
    assert api_init.installed_from() == action


def test_where_nothing_says_it_there_is_no_workflow_and_a_line(finished, tmp_path, monkeypatch):
    installed(monkeypatch, {"url": "file:///home/me/lmms-patch", "dir_info": {}})
    made = api.init.gate(finished, output=tmp_path)
    assert made.files == (tmp_path / "gates.yaml",)
    assert f"lmms-patch init gate {finished} --action OWNER/lmms-patch@v" in made.notes[-1]
    with pytest.raises(OptionError, match="must be a repository on GitHub with a tag or a commit"):
        api.init.gate(finished, output=tmp_path, action="lmms-patch")


@pytest.fixture
def from_an_index(finished, tmp_path, monkeypatch):
    """The workflow of an install from a package index."""
    installed(monkeypatch, None)
    api.init.gate(finished.parent, output=tmp_path)
    return yaml.load((tmp_path / ".github" / "workflows" / "lmms-patch.yml").read_text(), Loader=yaml.BaseLoader)[
        "jobs"
    ]


def test_an_install_from_an_index_is_installed_from_there_at_the_same_version(from_an_index):
    runs = [one["run"] for one in from_an_index["evaluate"]["steps"] if "run" in one]
    assert shlex.split(runs[0]) == ["pip", "install", f"lmms-patch[all]=={__version__}"]
    assert {"all"} <= set(metadata.metadata("lmms-patch").get_all("Provides-Extra"))
    install = from_an_index["gate"]["steps"][1]["run"].splitlines()
    step = next(step["run"] for step in ACTION["runs"]["steps"] if step["name"] == "Install lmms-patch")
    light = [line.partition(" pip install ")[2] for line in step.splitlines() if " pip install " in line]
    assert [line.partition(" pip install ")[2] for line in install[1:]] == [
        light[0],
        f"--quiet --no-deps lmms-patch=={__version__}",
    ]


def test_the_gate_of_such_a_workflow_reads_nothing_of_strangers_but_the_runs(from_an_index):
    steps = from_an_index["gate"]["steps"]
    order = [one.get("uses", "run").partition("@")[0] for one in steps]
    assert order == [
        "actions/setup-python",
        "run",
        "actions/checkout",
        "actions/download-artifact",
        "run",
        "actions/upload-artifact",
    ]
    assert steps[2]["with"]["ref"] == "${{ github.event.pull_request.base.sha || github.sha }}"
    for one in (steps[1], steps[4]):
        assert "${{" not in one["run"]
        assert all(" -I -m " in line for line in one["run"].splitlines()), (
            "no Python reads a module of the folder that it runs in"
        )


@pytest.mark.parametrize(("tasks", "status"), [("finished", 0), ("worse", 1)])
def test_the_gate_of_such_a_workflow_ends_as_the_gate_does(
    from_an_index, finished, tmp_path, monkeypatch, tasks, status
):
    """What bash hands to Python, handed to our own command line."""
    (tmp_path / "base").mkdir()
    (tmp_path / "gates.yaml").rename(tmp_path / "base" / "gates.yaml")
    if tasks == "worse":
        made = {
            "toy_rci3": world_run(knows(0.3, 0.3), n=120, grid=3),
            "text_rci3": world_run(never_looks, n=120, grid=3, base="text"),
        }
        written(tmp_path / "out" / "new", {**made, "blind_blind": views_run("blind", [0.4], n=40, base="blind")})
    else:
        shutil.copytree(finished.parent, tmp_path / "out" / "new")
    monkeypatch.chdir(tmp_path)
    step = from_an_index["gate"]["steps"][4]["run"]
    words = shlex.split(
        subprocess.run(["bash", "-c", f"printf '%s\\n' {step}"], capture_output=True, text=True, check=True).stdout
    )
    assert words[1:4] == ["-I", "-m", "lmms_patch.app.cli"]
    assert main(words[4:]) == status
    left = from_an_index["gate"]["steps"][5]["with"]["path"].split()
    assert all((tmp_path / name).is_file() for name in left)


def test_nothing_is_replaced_without_force(finished, tmp_path, capsys):
    mine = tmp_path / "gates.yaml"
    mine.write_text("mine")
    words = ["init", "gate", str(finished), "--output", str(tmp_path), "--action", "o/p@v1"]
    assert main(words) == 2
    assert (
        capsys.readouterr().err
        == f"lmms-patch: {mine}: there already, and may have been changed; type --force to replace what is there\n"
    )
    assert mine.read_text() == "mine"
    assert not (tmp_path / ".github").exists()
    assert main([*words, "--force"]) == 0
    assert "rules:" in mine.read_text()


# --- task -------------------------------------------------------------------------------------------------


def options_in(text):
    """A task file with every option that has a value switched on."""
    switched = re.sub(r"^#(?=[\w\"]+: \S)", "", text, flags=re.M)
    return yaml.safe_load(switched.replace("class: !function lmms_patch.Wrap\n", ""))


def test_a_task_file_is_loaded_and_asked_by_the_host(tmp_path, capsys):
    write_task(tmp_path, "toy", rows(4))
    words = ["init", "task", "toy_rci2", "--include-path", str(tmp_path), "--output", str(tmp_path)]
    assert main(words) == 0
    path = tmp_path / "my_toy_rci2.yaml"
    line = f"lmms-eval --model MODEL --include_path {tmp_path} --tasks my_toy_rci2 --output_path out --log_samples"
    assert capsys.readouterr().out == f"written: {path}\nnext: {line}\n"
    assert "rci2" in metrics(run(Model(), "my_toy_rci2", tmp_path), "my_toy_rci2")
    path.write_text(path.read_text().replace("#min_cell: 0", "min_cell: 28"))
    model = Model()
    run(model, "my_toy_rci2", tmp_path)
    assert {min(image.size) for _, _, images, _ in model.seen for image in images} == {60, 30}, (
        "cells of 30 pixels are large enough"
    )
    assert main(words) == 2
    assert "there already" in capsys.readouterr().err
    assert main(words[:-2]) == 2  # the default is another folder, and the host would not find the task there
    assert capsys.readouterr().err.endswith(f"type --output {tmp_path}\n")
    inside = tmp_path / "own"
    assert main([*words[:-1], str(inside), "--name", "other"]) == 0
    assert f"--include_path {tmp_path} --tasks other" in capsys.readouterr().out


@pytest.mark.usefixtures("indexed")
@pytest.mark.parametrize(
    "name",
    [
        "mosaic_local_rci3",
        "mosaic_local_rci",
        "mosaic_local_tst4",
        "mosaic_local_blind",
        "mosaic_local_rci3_quick",
        "mosaic_video_moment_trci4",
    ],
)
def test_switching_every_option_on_changes_nothing(name, tmp_path):
    (path,) = api.init.task(name, output=tmp_path).files
    found = options_in(path.read_text())
    spec = from_file(found)
    wanted = api_init._takes(spec)
    assert spec.name == f"my_{name}"
    assert (spec.options.quick, spec.kind.name) == (name.endswith("quick"), found["kind"])
    assert set(found) - {"task", "base", "kind", "grids", "folds"} <= wanted | {"quick"}
    if name == "mosaic_local_rci3":
        assert (spec.options.cluster, spec.options.category, spec.options.null) == ("group", "category", 60), (
            "what the base says itself"
        )
    listed = set(re.findall(r'^#?"?(\w+)"?:', path.read_text(), re.M))
    assert wanted <= listed


def test_every_option_belongs_to_some_way_of_wrapping():
    grouped = {name for names in api_init._OF_KIND.values() for name in names}
    assert grouped <= set(Options.model_fields)


@pytest.mark.usefixtures("indexed")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["task", "mosaic_local"],
            "mosaic_local: not a wrapped name; add a way of wrapping, such as mosaic_local_rci3",
        ),
        (
            ["task", "mosaic_locl_rci3"],
            "mosaic_locl_rci3: lmms-eval knows no task, group or tag 'mosaic_locl'; did you mean mosaic_local_rci3",
        ),
        (["task", "mosaic_local_rci3", "--name", "a/b"], "--name 'a/b': must be letters"),
        (["task", "mosaic_local_rci3", "--name", "gqa"], "--name gqa: lmms-eval has a task, group or tag of this name"),
        (
            ["task", "librispeech_test_other_rci3"],
            "librispeech_test_other_rci3: librispeech_test_other cannot be wrapped: ",
        ),
        (
            ["suite", "ours", "mosaic_local"],
            "init suite is gone: one name for several tasks is a group of lmms-eval, two lines in a file",
        ),
    ],
)
def test_mistakes_are_one_line_and_write_nothing(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["init", *words]) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("indexed")
def test_a_task_with_a_judge_says_so(tmp_path):
    (path,) = api.init.task("mathvista_testmini_cot_rci3", output=tmp_path).files
    assert options_in(path.read_text())["allow_judge"] is True
    assert "\nallow_judge: true  # its scorer calls a judge model" in path.read_text()


# --- one name for several tasks ---------------------------------------------------------------------------


def test_the_group_that_the_guide_shows(tmp_path):
    """Its two lines, of tasks that are here: as bases that are wrapped together, and as wrapped names."""
    guide = (ROOT / "docs" / "guides" / "unstuck.md").read_text()
    shown = guide.partition("```yaml\n")[2].partition("```")[0]
    assert yaml.safe_load(shown) == {"group": "ours", "task": ["mosaic_local", "mosaic_count"]}
    for name in ("one", "two"):
        write_task(tmp_path, name, rows(3))
    for group, members, asked in (("ours", "one, two", "ours_rci2"), ("weekly", "one_rci2, two_rci2", "weekly")):
        (tmp_path / f"{group}.yaml").write_text(
            shown.replace("ours", group).replace("mosaic_local, mosaic_count", members)
        )
        assert {"one_rci2", "two_rci2"} <= set(run(Model(), asked, tmp_path)["results"])
