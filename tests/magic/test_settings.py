"""What the environment tells the MAGIC tasks."""

import pytest

from lmms_patch.errors import OptionError
from lmms_patch.magic.settings import MagicSettings


def test_defaults_serve():
    assert MagicSettings.from_env({}) == MagicSettings(
        data="", split="test", seed=0, examples="", shots=8, example_images=False, prefill="auto"
    )


def test_all_are_read():
    env = {
        "MAGIC_DATA": " kitchen ",
        "MAGIC_SPLIT": "dev",
        "MAGIC_SEED": "7",
        "MAGIC_EXAMPLES": "shots.jsonl",
        "MAGIC_SHOTS": "2",
        "MAGIC_EXAMPLE_IMAGES": "1",
        "MAGIC_PREFILL": "assistant",
        "MAGIC_JUDGE": "gpt",
        "HOME": "x",
    }
    assert MagicSettings.from_env(env) == MagicSettings(
        data="kitchen", split="dev", seed=7, examples="shots.jsonl", shots=2, example_images=True, prefill="assistant"
    )


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("MAGIC_SEED", "x", "environment: MAGIC_SEED must be a whole number of at least 0, such as 7, not 'x'"),
        ("MAGIC_SEED", "-1", "MAGIC_SEED must be a whole number of at least 0, such as 7, not '-1'"),
        ("MAGIC_SEED", "1_0", "MAGIC_SEED must be a whole number of at least 0, such as 7, not '1_0'"),
        ("MAGIC_SHOTS", "2.0", "MAGIC_SHOTS must be a whole number of at least 1, such as 2, not '2.0'"),
        ("MAGIC_SHOTS", "0", "MAGIC_SHOTS must be a whole number of at least 1, such as 2, not '0'"),
        ("MAGIC_PREFILL", "both", "MAGIC_PREFILL must be 'auto', 'prompt' or 'assistant', not 'both'"),
        ("MAGIC_EXAMPLE_IMAGES", "yes", "MAGIC_EXAMPLE_IMAGES must be 0 or 1, not 'yes'"),
        ("MAGIC_SEDE", "1", "the environment variable MAGIC_SEDE is not known; did you mean MAGIC_SEED?"),
    ],
)
def test_a_wrong_value_is_one_line(name, value, said):
    with pytest.raises(OptionError, match=said.replace("?", r"\?")) as caught:
        MagicSettings.from_env({name: value})
    assert "\n" not in str(caught.value)


def test_a_variable_of_another_program_is_none_of_our_business():
    assert MagicSettings.from_env({"MAGIC_WAND": "1"}).seed == 0


def test_all_wrong_values_are_told_at_once():
    with pytest.raises(
        OptionError,
        match=r"^environment: 2 faults: \(1\) MAGIC_SEED must be .*; \(2\) MAGIC_PREFILL must be .*; did you mean prompt\?$",
    ):
        MagicSettings.from_env({"MAGIC_SEED": "x", "MAGIC_PREFILL": "promt"})
