"""The schemas of the files that people write, and the command that prints them."""

import json

import pytest
import yaml
from jsonschema import Draft202012Validator

from lmms_patch.app import schemas
from lmms_patch.app.cli import main
from lmms_patch.resources import folder


@pytest.mark.parametrize("name", schemas.names())
def test_each_is_printed_and_is_a_schema_of_its_draft(name, capsys):
    assert main(["config", f"schemas/{name}"]) == 0
    found = json.loads(capsys.readouterr().out)
    Draft202012Validator.check_schema(found)
    assert (found["title"], found["$schema"]) == (name, "https://json-schema.org/draft/2020-12/schema")


def test_shipped_rules_are_right_and_a_wrong_key_is_not():
    judge = Draft202012Validator(schemas.load("gate-config"))
    for path in sorted((folder("configs") / "gates").glob("*.yaml")):
        rules = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert judge.is_valid(rules), path
        assert not judge.is_valid({**rules, "rule": []})


def test_the_list_names_each(capsys):
    assert main(["config", "schemas"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        f"schemas/{name}" for name in schemas.names()
    ]


def test_a_name_that_is_none_names_its_neighbour(capsys):
    assert main(["config", "schemas/gate-confg"]) == 2
    assert "did you mean gate-config?" in capsys.readouterr().err
