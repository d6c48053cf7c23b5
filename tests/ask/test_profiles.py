"""The loader of profiles; what the project's own profiles say of their tasks is tested in tests/tasks."""

import pytest

from lmms_patch.ask import profiles
from lmms_patch.ask.spec import Options
from lmms_patch.errors import OptionError


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A user's folder; write profiles into it by name."""
    folder = tmp_path / "profiles"
    folder.mkdir()
    monkeypatch.setenv("LMMS_PATCH_PROFILES", str(folder))

    def write(name, text):
        path = folder / name
        path.write_text(text) if isinstance(text, str) else path.write_bytes(text)
        return path

    return write


def test_reading_one(own):
    found = profiles.read(own("zoo.yaml", "tasks: [zoo, zoo_*]\nmetric: acc\ncluster: [photo, cage]\nchance: 0.25\n"))
    assert (found.name, found.tasks) == ("zoo", ("zoo", "zoo_*"))
    assert found.options == Options(metric="acc", cluster=["photo", "cage"], chance=0.25)
    assert found.options.given == {"metric", "cluster", "chance"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tasks: [zoo\n", "cannot be read"),
        ("\ttasks: [zoo]", "cannot be read"),
        (b"tasks: [caf\xe9]", "cannot be read"),
        ("", "must be keys and values"),
        ("- zoo", "must be keys and values"),
        ("zoo", "must be keys and values"),
        ("metric: acc", "tasks is missing; it must be a list of task names, such as 'tasks: [gqa]'"),
        ("tasks: zoo", "tasks must be a list of task names"),
        ("tasks: []", "tasks must be a list of task names"),
        ("tasks: [1]", "tasks must be a list of task names"),
        ("tasks: ['']", "tasks must be a list of task names"),
        ("tasks: [zoo]\nmetrik: acc", "unknown option 'metrik'; did you mean metric?"),
        ("tasks: [zoo]\n1: acc", "unknown option 1"),
        ("tasks: [zoo]\ngiven: [metric]", "unknown option 'given'"),
        ("tasks: [zoo]\nchance: often", "chance must be a number"),
        ("tasks: [zoo]\nmin_side: 0", "min_side must be a whole number of at least 1"),
        ("tasks: [zoo]\naggregation: {acc: median}", "aggregation must be a form for each metric"),
        (
            "tasks: [zoo]\nmerged: {pets: [cat, dog], wild: [cat]}",
            "merged must be a list of categories for each name, such as {animals: [cat, dog]}",
        ),
        ("tasks: [zoo]\nmerged: [cat, dog]", "merged must be a list of categories for each name"),
        ("tasks: [zoo]\nformat: essay", "format must be"),
    ],
)
def test_a_wrong_profile_is_one_line_that_names_the_file(own, text, says):
    path = own("wrong.yaml", text)
    with pytest.raises(OptionError) as caught:
        profiles.read(path)
    message = str(caught.value)
    assert says in message
    assert str(path) in message
    assert "\n" not in message


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(OptionError, match="cannot be read"):
        profiles.read(tmp_path / "none.yaml")


@pytest.mark.parametrize("value", [None, ""])
def test_without_a_folder_the_projects_profiles_count(monkeypatch, value):
    """POPE's scorer has five metrics; its profile says which is the primary one."""
    monkeypatch.delenv("LMMS_PATCH_PROFILES", raising=False)
    if value is not None:
        monkeypatch.setenv("LMMS_PATCH_PROFILES", value)
    assert profiles.of("pope").metric == "pope_accuracy"


def test_a_task_without_a_profile(own):
    own("zoo.yaml", "tasks: [zoo]")
    assert profiles.of("no_such_task") is None


def test_an_exact_name_wins_over_a_wildcard(own):
    """Whatever the order of the files."""
    own("a.yaml", "tasks: ['zoo*']\nmetric: wide")
    own("b.yaml", "tasks: [zoo_cats]\nmetric: exact")
    own("c.yaml", "tasks: ['zoo_*']\nmetric: narrow")
    assert profiles.of("zoo_cats").metric == "exact"
    assert profiles.of("zoo_dogs").metric == "wide"  # of two wildcards the first file
    assert profiles.of("zoo").metric == "wide"


def test_wildcards_match_whole_names_and_their_case(own):
    own("a.yaml", "tasks: ['zoo_?', 'Farm*']\nmetric: m")
    assert profiles.of("zoo_1").metric == "m"
    assert profiles.of("zoo_12") is None
    assert profiles.of("my_zoo_1") is None
    assert profiles.of("farm") is None


def test_the_users_folder_wins_even_with_a_wildcard(own):
    """The project names pope exactly. Profiles are not mixed: what the user's leaves out is the default."""
    own("mine.yaml", "tasks: ['pop*']\nmetric: pope_f1_score")
    found = profiles.of("pope")
    assert found == Options(metric="pope_f1_score")
    assert profiles.of("gqa").cluster == "imageId"  # of the project's, as the user has none for it


def test_one_wrong_profile_is_said_whatever_task_is_asked_for(own):
    own("good.yaml", "tasks: [zoo]")
    own("wrong.yaml", "tasks: [other]\nmetrik: acc")
    with pytest.raises(OptionError, match="metrik"):
        profiles.of("zoo")
