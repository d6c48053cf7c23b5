"""Broken installations, made on disk as pip leaves them: each is told in one line, with what to type."""

import importlib
import json
import sys
import types
from importlib import metadata

import lmms_eval.models  # noqa: F401 - what the plugin and the host import must be there before a test hides what is installed
import packaging.requirements
import packaging.specifiers  # noqa: F401 - the doctor imports it while a test hides what is installed
import pytest

import lmms_patch
import lmms_patch.harness.plugin
from lmms_patch.app.doctor import installed
from lmms_patch.harness.names import adapters, effects, host

META = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{more}"
ENTRY = "[lmms_eval.models]\nlmms_patch = lmms_patch.harness.plugin:register\n"


def put(site, name, version, *, requires=(), python="", entry="", files=()):
    """A distribution in a folder, as pip lays it out."""
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    more = "".join(f"Requires-Dist: {one}\n" for one in requires) + (f"Requires-Python: {python}\n" if python else "")
    (folder / "METADATA").write_text(META.format(name=name, version=version, more=more))
    if entry:
        (folder / "entry_points.txt").write_text(entry)
    for file in files:
        (site / file).parent.mkdir(parents=True, exist_ok=True)
        (site / file).touch()
    return folder


def editable(folder, checkout):
    (folder / "direct_url.json").write_text(json.dumps({"dir_info": {"editable": True}, "url": checkout.as_uri()}))


@pytest.fixture
def site(tmp_path, monkeypatch):
    """The only folder that packages are found in."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder)])
    return folder


@pytest.fixture
def whole(site):
    """A sound installation: our package, editable, and lmms-eval."""
    checkout = site.parent / "checkout"
    own = put(
        site,
        "lmms-patch",
        lmms_patch.__version__,
        requires=["lmms-eval>=0.7.3,<0.8", "tenacity>=8.3"],
        python=">=3.10",
        entry=ENTRY,
    )
    editable(own, checkout)
    put(site, "lmms-eval", "0.7.3", requires=["torch>=2.1.0", 'wandb; extra == "all"'])
    put(site, "torch", "2.15.0")
    put(site, "torchvision", "0.29.2", requires=["torch (>=2.14.0)"])
    put(site, "tenacity", "9.0")
    return site


def only(found, state):
    """The one line that is not ok, and that nothing of it is left to guess."""
    (one,) = [line for line in found if line.state != "ok"]
    assert one.state == state
    assert one.type
    assert "\n" not in one.said + one.type
    return one


def at_home(monkeypatch, folder):
    (folder / "lmms_patch").mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(lmms_patch, "__file__", str(folder / "lmms_patch" / "__init__.py"))


# --- our own package --------------------------------------------------------------------------------------


def test_a_sound_package_is_ok(whole, monkeypatch):
    at_home(monkeypatch, whole.parent / "checkout")
    (line,) = installed.package()
    assert (line.state, line.said) == (
        "ok",
        f"lmms-patch {lmms_patch.__version__} in {whole.parent / 'checkout' / 'lmms_patch'}",
    )
    assert [one.state for one in installed.versions()] == ["ok"]


def test_a_package_that_is_not_installed_cannot_be_found_by_the_host(site):
    line = only(installed.package(), "wrong")
    assert "is not installed: lmms-eval cannot find it" in line.said
    assert line.type == "pip install lmms-patch"


def test_a_shadowed_package(whole, monkeypatch, tmp_path):
    at_home(monkeypatch, tmp_path / "elsewhere")
    line = only(installed.package(), "wrong")
    assert f"from {tmp_path / 'elsewhere' / 'lmms_patch'}, but" in line.said
    assert "PYTHONPATH" in line.type


def test_a_second_copy(whole, monkeypatch, tmp_path):
    at_home(monkeypatch, whole.parent / "checkout")
    other = tmp_path / "user-site"
    put(other, "lmms_patch", "0.0.9")
    monkeypatch.setattr(sys, "path", [str(whole), str(other), str(whole)])
    line = only(installed.package(), "wrong")
    assert line.said == f"lmms-patch is installed 2 times: {lmms_patch.__version__} in {whole} and 0.0.9 in {other}"


def test_files_of_another_version_than_pip_noted(whole, monkeypatch):
    at_home(monkeypatch, whole.parent / "checkout")
    monkeypatch.setattr(lmms_patch, "__version__", "9.9")
    assert "are 9.9, but pip has noted" in only(installed.package(), "wrong").said


def test_a_python_that_is_too_old(site):
    put(site, "lmms-patch", "1", python=">=3.99")
    line = only(installed.python(), "wrong")
    assert line.said == f"Python {'.'.join(map(str, sys.version_info[:3]))}, but lmms-patch needs >=3.99"


@pytest.mark.parametrize(
    ("name", "version", "requires", "state", "said", "kind"),
    [
        (
            "torch",
            "2.13.0",
            [],
            "wrong",
            "torchvision needs torch>=2.14.0 (2.13.0 is installed)",
            "pip install 'torch>=2.14.0'",
        ),
        (
            "tenacity",
            "8.2",
            [],
            "wrong",
            "lmms-patch needs tenacity>=8.3 (8.2 is installed)",
            "pip install 'tenacity>=8.3'",
        ),
        (
            "transformers",
            "5.23.0",
            ["tokenizers<0.24"],
            "wrong",
            "transformers needs tokenizers<0.24 (not installed)",
            "pip install 'tokenizers<0.24'",
        ),
    ],
)
def test_versions_out_of_range(whole, name, version, requires, state, said, kind):
    for old in whole.glob(f"{name}-*"):
        (old / "METADATA").unlink()
        old.rmdir()
    put(whole, name, version, requires=requires)
    line = only(installed.versions(), state)
    assert (line.said, line.type) == (said, kind)


def test_what_lmms_eval_alone_lacks_is_a_warning(whole):
    for old in whole.glob("lmms_eval-*"):
        (old / "METADATA").write_text(
            META.format(name="lmms-eval", version="0.7.3", more="Requires-Dist: ftfy\nRequires-Dist: torch\n")
        )
    line = only(installed.versions(), "warning")
    assert line.said == "lmms-eval needs ftfy (not installed)"


# --- lmms-eval --------------------------------------------------------------------------------------------


def test_no_lmms_eval(site):
    put(site, "lmms-patch", "1")
    line = only(installed.host(), "wrong")
    assert line.said == "lmms-eval is not installed: finished runs can be read, but none can be made"
    assert line.type == "pip install 'lmms-eval>=0.7.3,<0.8'"


@pytest.mark.parametrize("version", ["0.6.1", "0.8.0"])
@pytest.mark.parametrize("found", [[], ["TaskManager.match_tasks is missing"]])
def test_an_lmms_eval_that_is_not_known_is_asked_for_its_functions(site, monkeypatch, version, found):
    put(site, "lmms-eval", version)
    monkeypatch.setattr(host, "at_odds", lambda: found)
    line = only(installed.host(), "wrong" if found else "warning")
    assert (
        f"not with the installed {version}: {found[0]}" if found else f"{version} has every function it needs"
    ) in line.said
    assert line.type == "pip install 'lmms-eval>=0.7.3,<0.8'"


def test_a_folder_that_stands_before_lmms_eval(monkeypatch, tmp_path):
    """The real host is what is found; the distribution says that it lies elsewhere."""
    put(tmp_path, "lmms-eval", "0.7.3", files=["lmms_eval/__init__.py"])
    one = metadata.Distribution.at(tmp_path / "lmms_eval-0.7.3.dist-info")
    monkeypatch.setattr(metadata, "distribution", lambda name: one)
    line = only(installed.host(), "wrong")
    assert "site-packages/lmms_eval, not the lmms-eval 0.7.3 that is installed" in line.said


def test_the_installed_host_has_what_we_replace():
    assert host.at_odds() == []


SOURCE = """
class TaskManager:
    def match_tasks(self, names): ...
    def initialize_tasks(self, include_path=None, include_defaults=True): ...
"""


def test_a_host_whose_functions_changed(monkeypatch, tmp_path):
    (tmp_path / "tasks.py").write_text(SOURCE)
    monkeypatch.setattr(
        host,
        "file_of",
        lambda module: tmp_path / "tasks.py" if module == "lmms_eval.tasks" else effects.file_of(module),
    )
    assert host.at_odds() == [
        "TaskManager.match_tasks has other parameters",
        "TaskManager._load_individual_task_or_group is missing",
    ]
    line = only(installed.host(), "wrong")
    assert "is not as it was published: TaskManager.match_tasks has other parameters; TaskManager._load" in line.said
    assert line.type == "pip install --force-reinstall --no-deps lmms-eval==0.7.3"


# --- the plugin -------------------------------------------------------------------------------------------


class Registry:
    def __init__(self, *ids):
        self.ids = ids

    def list_canonical_model_ids(self):
        return list(self.ids)


def loads(monkeypatch, *ids):
    """An lmms-eval whose registry knows these models."""
    module = types.ModuleType("lmms_eval.models")
    module.MODEL_REGISTRY_V2 = Registry(*ids)
    monkeypatch.setitem(sys.modules, "lmms_eval.models", module)


def test_the_plugin_is_loaded(whole, monkeypatch):
    loads(monkeypatch, "mosaic_vlm")
    (line,) = installed.plugin()
    assert (line.state, line.said) == (
        "ok",
        "lmms-eval loads it by the entry point lmms_patch = lmms_patch.harness.plugin:register",
    )


def test_an_entry_point_that_is_missing(site, monkeypatch):
    loads(monkeypatch, "mosaic_vlm")
    put(site, "lmms-patch", "1")
    line = only(installed.plugin(), "wrong")
    assert (
        line.said
        == "lmms-patch is installed without its entry point lmms_patch of lmms_eval.models: lmms-eval does not load it"
    )
    assert line.type == "pip install --force-reinstall --no-deps lmms-patch"


def test_a_stranger_whose_entry_point_breaks_ours(whole, monkeypatch):
    put(whole, "a-stranger", "1", entry="[lmms_eval.models]\nodd = no_such_module_anywhere:register\n")
    loads(monkeypatch)
    line = only(installed.plugin(), "wrong")
    assert (
        "the entry point odd (no_such_module_anywhere:register) of a-stranger fails (ModuleNotFoundError: " in line.said
    )
    assert line.type == "pip uninstall a-stranger, or update it"


def test_a_stranger_that_fails_when_it_is_called(whole, monkeypatch):
    (whole / "odd_plugin_of_nobody.py").write_text("def register():\n    raise RuntimeError('no models')\n")
    put(whole, "a-stranger", "1", entry="[lmms_eval.models]\nodd = odd_plugin_of_nobody:register\n")
    loads(monkeypatch)
    assert "of a-stranger fails (RuntimeError: no models): lmms-eval skips" in only(installed.plugin(), "wrong").said
    sys.modules.pop("odd_plugin_of_nobody", None)


def test_a_stranger_that_fails_after_ours_was_loaded_is_a_warning(whole, monkeypatch):
    put(whole, "a-stranger", "1", entry="[lmms_eval.models]\nodd = no_such_module_anywhere:register\n")
    loads(monkeypatch, "mosaic_vlm")
    assert "of a-stranger fails" in only(installed.plugin(), "warning").said


def test_an_lmms_eval_that_cannot_be_imported(whole, monkeypatch):
    monkeypatch.setitem(sys.modules, "lmms_eval.models", None)
    line = only(installed.plugin(), "wrong")
    assert line.said.startswith("lmms-eval cannot be imported (ModuleNotFoundError: ")


def test_an_entry_point_that_nobody_loaded(whole, monkeypatch):
    loads(monkeypatch, "qwen2_5_vl")
    assert "did not load the entry point" in only(installed.plugin(), "wrong").said


# --- adapters ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "states", "said"),
    [
        ("qwen2_5_vl", ["ok"], "looks docs up by their number at qwen2_5_vl.py:"),
        ("mosaic_vlm", ["ok"], "looks docs up by their number, so each view"),
        ("mistral3_vl", ["warning", "warning"], "does not look docs up by their number alone at mistral3_vl.py:292"),
        ("sam3", ["wrong"], "reads the image out of the doc itself at sam3.py:251"),
        ("qwen_image_edit", ["wrong"], "reads the image out of the doc itself at qwen_image_edit.py:841"),
        ("from_log", ["warning"], "no line was found by which it looks docs up"),
        ("bagel_umm", ["wrong"], "cannot be imported (ModuleNotFoundError: No module named"),
        ("qwen2_5_v", ["wrong"], "lmms-eval has no model qwen2_5_v"),
    ],
)
def test_adapters_of_the_host(name, states, said):
    found = list(installed.adapter(name))
    assert [line.state for line in found] == states
    assert said in found[0].said


@pytest.mark.parametrize(
    ("code", "said", "typed"),
    [
        ("raise SystemExit('install foo first')", "(SystemExit: install foo first)", "shows the whole error"),
        ("raise ModuleNotFoundError('install foo from github')", "install foo from github", "shows the whole error"),
        ("import numpy.nothere", "No module named 'numpy.nothere'", "shows the whole error"),
        ("import no_such_package", "No module named 'no_such_package'", "pip install no_such_package, or as"),
    ],
)
def test_an_adapter_that_cannot_be_imported_says_what_to_type(tmp_path, monkeypatch, code, said, typed):
    (tmp_path / "odd_adapter.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    there = types.SimpleNamespace(class_path="odd_adapter.Model", model_type="simple")
    monkeypatch.setattr(importlib.import_module("lmms_eval.models").MODEL_REGISTRY_V2, "resolve", lambda name: there)
    (line,) = installed.adapter("mosaic_vlm")
    assert line.state == "wrong"
    assert said in line.said
    assert typed in line.type


@pytest.mark.parametrize("name", ["idefics2", "instructblip", "lfm2_5_vl", "llava_hf", "minicpm_v", "qwen2_5_vl"])
def test_adapters_that_fail_without_an_image_are_named(name):
    """``llava_hf`` is run in tests/harness/asking/test_llava.py.

    ``instructblip`` hands an empty list to an image processor.
    """
    said = [line for line in installed.adapter(name) if "in place of _blind" in line.said]
    assert [line.state for line in said] == ["warning"] * (name != "qwen2_5_vl")


ADAPTERS = """
from made_base import Base

class Batch:
    def generate_until(self, requests):
        shown = [doc_to_visual[0](self.task_dict[task][split][ids]) for ids in doc_id]

class Heir(Base):
    pass

class Clamps:
    def generate_until(self, requests):
        return self.task_dict[task][split][min(doc_id, 5)]

class Counts:
    def generate_until(self, requests):
        return self.task_dict[task][split][doc_id + 1]

class Whole:
    def generate_until(self, requests):
        docs = self.task_dict[task][split]
        return docs[doc_id]

class Reads:
    def generate_until(self, requests):
        doc = self.task_dict[task][split][doc_id]
        return doc_to_visual(doc), doc.get("image")

class Words:
    def generate_until(self, requests):
        return self.task_dict[task][split][doc_id]["question"], doc_to_visual(self.task_dict[task][split][doc_id])

class Silent:
    def generate_until(self, requests):
        return "B"
"""
BASE = """
class Base:
    def load(self, number):
        return self.task_dict["a"]["b"][number]
"""


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("Batch", "by number"),
        ("Heir", "by number"),
        ("Clamps", "otherwise"),
        ("Counts", "otherwise"),
        ("Whole", "otherwise"),
        ("Reads", "past the view"),
        ("Words", "by number"),
        ("Silent", "unknown"),
    ],
)
def test_what_the_code_of_an_adapter_tells(name, way, tmp_path, monkeypatch):
    (tmp_path / "made_adapters.py").write_text(ADAPTERS)
    (tmp_path / "made_base.py").write_text(BASE)
    monkeypatch.syspath_prepend(tmp_path)
    for module in ("made_adapters", "made_base"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    assert adapters.read(getattr(importlib.import_module("made_adapters"), name))[0] == way


@pytest.mark.parametrize(
    ("code", "said", "hint"),
    [
        (
            "import no_such_package_of_anybody.part",
            "No module named 'no_such_package_of_anybody'",
            "pip install no_such_package_of_anybody, or as",
        ),
        (
            "print('loud')\nfrom json import nothing",
            "cannot import name 'nothing' from 'json'",
            "python -c 'import made_adapters' shows",
        ),
    ],
)
def test_an_adapter_that_cannot_be_imported(tmp_path, monkeypatch, capsys, code, said, hint):
    (tmp_path / "made_adapters.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "made_adapters", raising=False)
    registry = installed.import_module(installed.GROUP).MODEL_REGISTRY_V2
    resolved = types.SimpleNamespace(model_type="chat", class_path="made_adapters.Made", model_id="qwen2_5_vl")
    monkeypatch.setattr(registry, "resolve", lambda name: resolved)
    line = only(installed.adapter("qwen2_5_vl"), "wrong")
    assert said in line.said
    assert line.type.startswith(hint)
    assert not capsys.readouterr().out


def test_nearly_all_adapters_of_the_host_look_docs_up_by_number():
    """Each of those that do not was read by a person (docs/footguns.md)."""
    models = (
        ("chat.qwen3_vl", "Qwen3_VL"),
        ("chat.huggingface", "Huggingface"),
        ("simple.llava_onevision", "Llava_OneVision"),
    )
    found = (getattr(importlib.import_module(f"lmms_eval.models.{module}"), name) for module, name in models)
    assert {adapters.read(adapter)[0] for adapter in found} == {"by number"}
