"""Broken installations: each is told in one line, with what to type."""

import sys
from importlib import metadata

import pytest

from lmms_patch.app.cli import main
from lmms_patch.app.commands import doctor
from lmms_patch.errors import EXTRAS


def lines(**more):
    return {one.about: one for one in doctor.doctor(**more)}


def test_of_a_whole_installation_all_is_ok(capsys):
    assert main(["doctor", "--model", "mosaic_vlm"]) == 0
    said = capsys.readouterr().out
    assert f"ok       versions: lmms-patch {metadata.version('lmms-patch')}, lmms-eval 0." in said
    assert "ok       plugin: lmms-eval loads it\nok       adapter: mosaic_vlm (" in said


@pytest.mark.parametrize(
    ("installed", "said", "typed"),
    [
        ({"lmms-eval": "0.9.0"}, "lmms-eval<0.8,>=0.7.3 (0.9.0 installed)", "pip install 'lmms-eval<0.8,>=0.7.3'"),
        ({"msgspec": ""}, "msgspec>=0.22 (not installed)", "pip install 'msgspec>=0.22'"),
    ],
)
def test_a_version_that_does_not_work_is_wrong(monkeypatch, capsys, installed, said, typed):
    known = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: installed.get(name, known(name)))
    assert main(["doctor"]) == 1
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("wrong    versions: lmms-patch ")
    assert said in first
    assert second.strip() == f"type: {typed}"


def test_a_package_that_is_not_installed_is_wrong(monkeypatch):
    def requires(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(doctor.metadata, "requires", requires)
    assert (lines()["versions"].state, lines()["versions"].type) == ("wrong", "pip install lmms-patch")


def test_an_optional_part_that_is_missing_is_a_warning(monkeypatch, capsys):
    monkeypatch.setitem(EXTRAS, "lora", ("peft_that_is_not_there",))
    assert main(["doctor"]) == 0
    told = capsys.readouterr().out
    assert "warning  optional part lora: peft_that_is_not_there is not installed\n" in told
    assert "         type: pip install 'lmms-patch[lora]'\n" in told


def test_a_plugin_that_was_not_loaded_is_wrong(monkeypatch):
    monkeypatch.setattr(doctor, "PROBE", "a_model_that_nobody_registers")
    assert (lines()["plugin"].state, lines()["plugin"].type) == ("wrong", "lmms-eval models, and read its warnings")


def test_an_lmms_eval_that_cannot_be_imported_is_wrong(monkeypatch):
    monkeypatch.setitem(sys.modules, "lmms_eval.models", None)
    plugin = lines(model="mosaic_vlm")["plugin"]
    assert plugin.state == "wrong"
    assert plugin.said.startswith("lmms-eval cannot be imported (ModuleNotFoundError: ")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import sys; sys.exit(0)", "SystemExit: 0"),
        ("import nothing_of_this_name", "No module named 'nothing_of_this_name'"),
    ],
)
def test_an_adapter_that_cannot_be_imported_is_wrong(tmp_path, monkeypatch, capsys, code, said):
    import lmms_eval.models

    (tmp_path / "odd_adapter.py").write_text(f"print('loading')\n{code}\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry = lmms_eval.models.MODEL_REGISTRY_V2
    known = registry.resolve("mosaic_vlm")
    monkeypatch.setattr(registry, "list_model_names", lambda: ["odd"])
    monkeypatch.setattr(
        registry, "resolve", lambda name: type(known)(**{**vars(known), "class_path": "odd_adapter.Odd"})
    )
    assert main(["doctor", "--model", "odd"]) == 1
    printed = capsys.readouterr()
    assert "wrong    adapter: odd cannot be imported (" in printed.out
    assert said in printed.out
    assert "loading" not in printed.out


def test_a_name_of_no_adapter_is_wrong_and_the_nearest_is_named():
    adapter = lines(model="mosaic_vml")["adapter"]
    assert (adapter.state, adapter.said) == ("wrong", "lmms-eval has no model mosaic_vml")
    assert "mosaic_vlm" in adapter.type
