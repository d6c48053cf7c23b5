"""Rules files: read right, or refused in one line that says what is allowed."""

import jsonschema
import pytest
import yaml

from lmms_patch.app import schemas
from lmms_patch.errors import OptionError
from lmms_patch.gate import rules
from lmms_patch.gate.rules import Rule, parse, read

GOOD = {"name": "a", "metric": "fip", "min": 0.5}


def file_of(*given, **defaults):
    return {"schema": 1, "rules": list(given), **({"defaults": defaults} if defaults else {})}


def test_a_rule_with_every_key():
    text = """
schema: 1
defaults: {level: 0.9, margin: 0.01, inconclusive: warn, ignore: [limit]}
rules:
  - name: one
    task: [a_*, b_*]
    model: m
    base: b
    kind: "*rci"
    metric: rci3
    min: -1
    max: 0.5
    max_drop: 0.1
    max_rise: 0
    interval: false
    require: valid gate
    max_excluded: 0.1
    min_docs: 10
    margin: 0.02
    level: 0.99
    inconclusive: block
  - {name: two, metric: fip, min: 1}
"""
    found = parse(yaml.safe_load(text))
    one, two = found.rules
    assert found.ignore == ("limit",)
    assert (one.name, one.task, one.model, one.base, one.kind, one.metric) == (
        "one",
        ("a_*", "b_*"),
        ("m",),
        ("b",),
        ("*rci",),
        "rci3",
    )
    assert (one.min, one.max, one.max_drop, one.max_rise, one.absolute, one.interval) == (
        -1.0,
        0.5,
        0.1,
        0.0,
        False,
        False,
    )
    assert (one.require, one.max_excluded, one.min_docs) == (("valid gate",), 0.1, 10)
    assert (one.margin, one.level, one.inconclusive) == (0.02, 0.99, "block")
    assert (two.level, two.margin, two.inconclusive, two.interval) == (0.9, 0.01, "warn", True)
    assert parse(file_of(GOOD)).rules == (Rule(name="a", metric="fip", min=0.5),)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "must be keys and values"),
        ([], "must be keys and values"),
        ("text", "must be keys and values"),
        ({"rules": [GOOD]}, "schema is missing"),
        ({"schema": 2, "rules": [GOOD]}, "schema must be 1, which this version of lmms-patch reads, not 2"),
        ({"schema": True, "rules": [GOOD]}, "schema must be 1, which this version of lmms-patch reads, not True"),
        ({"schema": 1}, "rules is missing"),
        ({"schema": 1, "rules": []}, "rules must have at least 1 entry"),
        ({"schema": 1, "rules": {"a": 1}}, "rules must be a list, not {'a': 1}"),
        ({"schema": 1, "rule": [GOOD]}, "unknown option 'rule'; did you mean rules?"),
        ({"schema": 1, "rules": [GOOD], "defaults": [1]}, "defaults: must be keys and values"),
        (file_of(GOOD, min=1), "defaults: unknown option 'min'; did you mean margin?"),
        (file_of(GOOD, ignore=3), "defaults: ignore must be a text or a list"),
        (file_of(GOOD, level=1), "level must be a fraction"),
        (file_of("a"), "rule 1: must be keys and values"),
        (file_of({"metric": "fip", "min": 1}), "rule 1: name is missing"),
        (file_of({**GOOD, "name": " "}), "name must be"),
        (file_of({**GOOD, "name": 3}), "rule 1: name must be a text that says what the rule is for, not 3"),
        (file_of({**GOOD, "name": None}), "rule 1: name: says nothing"),
        (file_of({"name": "a"}), "no check, so it could never fail"),
        (file_of({"name": "a", "task": "*"}), "no check, so it could never fail"),
        (file_of({**GOOD, "max_drp": 1}), "unknown option 'max_drp'; did you mean max_drop"),
        (file_of({"name": "a", "min": 1}), "'min' of what? name a 'metric'"),
        (file_of({"name": "a", "metric": "fip", "min_docs": 1}), "'metric' without a limit"),
        (file_of({**GOOD, "metric": 3}), "metric must be a name"),
        (file_of({**GOOD, "metric": None}), "metric: says nothing"),
        (file_of({**GOOD, "min": "0.5"}), "min must be a number such as 0.02, not '0.5'"),
        (file_of({**GOOD, "min": None}), "min: says nothing"),
        (file_of({**GOOD, "min": True}), "min must be a number"),
        (file_of({**GOOD, "min": float("nan")}), "min must be a number"),
        (file_of({**GOOD, "max": float("inf")}), "max must be a number"),
        (file_of({**GOOD, "absolute": 1}), "absolute must be true or false"),
        (file_of({"name": "a", "metric": "rci3", "min": 0, "absolute": True}), "nothing can fail"),
        (file_of({"name": "a", "metric": "rci3", "max_rise": 0, "absolute": True}), "is of the number itself"),
        (file_of({"name": "a", "require": "gate"}), "require must be 'valid gate'"),
        (file_of({"name": "a", "max_excluded": 1}), "from 0 to below 1"),
        (file_of({"name": "a", "max_excluded": 5}), "from 0 to below 1"),
        (file_of({"name": "a", "min_docs": 0}), "at least 1"),
        (file_of({"name": "a", "min_docs": 1.5}), "whole number"),
        (file_of({**GOOD, "margin": -0.1}), "margin must be at least 0"),
        (file_of({**GOOD, "level": 95}), "level must be a fraction"),
        (file_of({**GOOD, "inconclusive": "pass"}), "inconclusive must be 'block' or 'warn', not 'pass'"),
        (file_of({**GOOD, "inconclusive": []}), "inconclusive must be 'block' or 'warn'"),
        (file_of({**GOOD, "task": []}), "must be a text or a list"),
        (file_of({**GOOD, "task": [1]}), "must be a text or a list"),
        (file_of({**GOOD, 3: 4}), "rule 'a': unknown option 3"),
    ],
)
def test_what_is_not_allowed_is_refused_in_one_line(given, said):
    with pytest.raises(OptionError) as caught:
        parse(given, "gates.yaml")
    message = str(caught.value)
    assert message.startswith("gates.yaml")
    assert said in message
    assert "\n" not in message
    assert len(message) < 400


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "must be keys and values"),
        (b"schema: 1\nrules: [", "cannot be read"),
        (b"schema: 1\nrules:\n\t- a", "cannot be read"),
        (b"\x00\x01\x02\xff", "cannot be read"),
        ("schema: 1\nrules:\n- {name: \u0007a, metric: fip, min: 1}".encode(), "cannot be read"),
        (b"schema: 1\nrules:\n- {name: a, metric: fip, min: 0.9, min: 0.1}", "the key 'min' is there twice"),
        (b"schema: 1\nrules:\n- name: a\n  metric: fip\n  min: 0.9\n  name: b", "'name' is there twice"),
        (b"!!python/object/apply:os.system ['true']", "cannot be read"),
        (b"[" * 5000, "brackets in each other"),
        (b"a: &a [*a]", "cannot be read"),
    ],
)
def test_a_damaged_file_is_refused_in_one_line(tmp_path, content, said):
    path = tmp_path / "gates.yaml"
    path.write_bytes(content)
    with pytest.raises(OptionError) as caught:
        read(path)
    assert said in str(caught.value) or "unknown option" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_bare_name_is_a_shipped_file_and_a_wrong_one_says_which_there_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert rules.find("model-regression").name == "model-regression.yaml"
    with pytest.raises(
        OptionError,
        match="or one of benchmark-release, magic, model-compliance, model-regression, video-regression, video-release",
    ):
        read("nothing")


@pytest.mark.parametrize("name", rules.shipped())
def test_shipped_rules_are_read_and_keep_the_schema(name):
    path = rules.find(name)
    assert read(name).rules
    jsonschema.validate(yaml.safe_load(path.read_text()), schemas.load("gate-config"))


def test_the_schema_has_every_key():
    schema = schemas.load("gate-config")
    assert set(schema["properties"]) == {"schema", "defaults", "rules"}
    assert set(schema["$defs"]["Rule"]["properties"]) == set(Rule.model_fields)
    assert set(schema["$defs"]["Defaults"]["properties"]) == set(rules.Defaults.model_fields)
    for wrong in ({"metric": "fip", "min": 1}, {**GOOD, "maxx": 1}, {**GOOD, "min": "high"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(file_of(wrong), schema)


def test_all_faults_of_a_file_are_told_at_once():
    with pytest.raises(OptionError) as caught:
        parse(file_of({**GOOD, "min": "high", "maxx": 1}, {"name": "b"}, level=95), "gates.yaml")
    assert str(caught.value) == (
        "gates.yaml: 4 faults: (1) defaults: level must be a fraction from 0.5 to below 1, such as 0.95, not 95; "
        "(2) rule 'a': min must be a number such as 0.02, not 'high'; (3) rule 'a': unknown option 'maxx'; did you mean max?; "
        "(4) rule 'b': no check, so it could never fail; give one of "
        "min, max, max_drop, max_rise, require, max_excluded, min_docs"
    )
