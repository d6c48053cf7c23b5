"""What the environment tells the MAGIC tasks."""

import pytest

from lmms_patch.errors import OptionError
from lmms_patch.magic.settings import MagicSettings


def test_defaults_serve():
    assert MagicSettings.from_env({}) == MagicSettings("", "test", 0, "", 8, False, "auto")


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
    assert MagicSettings.from_env(env) == MagicSettings("kitchen", "dev", 7, "shots.jsonl", 2, True, "assistant")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("MAGIC_SEED", "x", "MAGIC_SEED is 'x'; it must be a whole number of at least 0"),
        ("MAGIC_SEED", "-1", "MAGIC_SEED is '-1'"),
        ("MAGIC_SHOTS", "0", "MAGIC_SHOTS is '0'; it must be a whole number of at least 1"),
        ("MAGIC_PREFILL", "both", "MAGIC_PREFILL is 'both'; allowed: auto, prompt, assistant"),
        ("MAGIC_EXAMPLE_IMAGES", "yes", "MAGIC_EXAMPLE_IMAGES is 'yes'; allowed: 0, 1"),
        ("MAGIC_SEDE", "1", "the environment variable MAGIC_SEDE is not known; did you mean MAGIC_SEED?"),
    ],
)
def test_a_wrong_value_is_one_line(name, value, said):
    with pytest.raises(OptionError, match=said.replace("?", r"\?")) as caught:
        MagicSettings.from_env({name: value})
    assert "\n" not in str(caught.value)


def test_a_variable_of_another_program_is_none_of_our_business():
    assert MagicSettings.from_env({"MAGIC_WAND": "1"}).seed == 0
