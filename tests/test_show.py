from lmms_patch.pooling import average, groups
from lmms_patch.recompute import load as recompute_load
from lmms_patch.recompute import recompute
from lmms_patch.show import Shown, averaged_table, cell_tables, chances, load, meaning, pooled_table, table, warnings
from lmms_patch.spec import parse
from tests.runs import mc_run, write_run


def shown(base, fip, mpp2, mpp3, docs=100, name=None, wide=0.05, **metrics):
    spec = parse(f"{base}_rci")
    rci = [None if not fip else 1 - m / fip for m in (mpp2, mpp3)]
    ends = {
        f"rci{n}_{end}": value if value is None else value + by
        for n, value in zip((2, 3), rci, strict=True)
        for end, by in (("low", -wide), ("high", wide))
    }
    numbers = {**ends, "acc": fip, "acc_mpp2": mpp2, "acc_mpp3": mpp3, "rci2": rci[0], "rci3": rci[1], "records": docs, **metrics}
    return Shown(name or spec.name, {**spec.described(), "metric": "acc"}, numbers)


RUN = [
    shown("local", 0.8, 0.9, 0.88, chance=0.1, gate=1),
    shown("count", 0.9, 0.1, 0.0, chance=0.2, n_excluded3=3),
    shown("larger", 0.55, 0.0, 0.0, chance=0.5, gate=0, rci2=None, rci3=None),
    shown("zero", 0.0, 0.5, 0.5),
]


def test_table_shows_every_number():
    lines = table(RUN).splitlines()
    assert lines[2].split() == [
        "local_rci",
        "acc",
        "100",
        "0.100",
        "0.800",
        "0.900",
        "0.880",
        "-0.125",
        "[-0.175,",
        "-0.075]",
        "n/a",
        "-0.100",
        "[-0.150,",
        "-0.050]",
        "n/a",
    ]
    assert lines[4].split()[-4:] == ["near", "chance", "near", "chance"]
    assert lines[5].split() == ["zero_rci", "acc", "100", "n/a", "0.000", "0.500", "0.500", "n/a", "n/a"]


def test_the_sentence_says_what_cannot_be_read():
    said = meaning(RUN)
    assert "one cell is enough for local" in said
    assert "only the whole image answers count" in said
    assert "larger cannot be read" in said
    assert "zero" not in said


def test_nothing_is_said_where_the_interval_does_not_say_it():
    """RCI -0.019 [-0.068, 0.025] is not "one cell is enough", and neither is a low index that luck alone explains."""
    unclear = shown("toy", 0.8, 0.816, 0.816)
    assert "no task is clearly" in meaning([unclear])
    wide = shown("toy", 0.8, 0.9, 0.9, wide=0.3)
    assert "no task is clearly" in meaning([wide])
    lucky = shown("toy", 0.8, 0.9, 0.9, rci3_adj=1.0, rci3_adj_low=0.9)
    assert "no task is clearly" in meaning([lucky])
    assert "one cell is enough for toy" in meaning([shown("toy", 0.8, 0.9, 0.9)])
    assert "no task is clearly" in meaning([shown("toy", 0.8, 0.55, 0.55)])  # 0.31, from 0.26 on


def test_the_sentence_of_an_unclear_run():
    assert "no task is clearly" in meaning([shown("middle", 0.8, 0.7, 0.7)])


def test_a_run_without_an_index_is_not_spoken_of_as_if_it_had_cells():
    blind = Shown("toy_blind", {**parse("toy_blind").described(), "metric": "acc"}, {"acc": 0.5, "records": 9})
    assert meaning([blind]).startswith("In words: tasks of the kind blind have no index")
    assert "no task is clearly" in meaning([blind, shown("middle", 0.8, 0.7, 0.7)])


def test_docs_that_are_left_out_are_shown():
    assert "100 (3 left out)" in table(RUN)


def test_two_filters_are_two_named_rows():
    said = meaning([shown("two", 0.8, 0.9, 0.9, name="two_rci, first"), shown("two", 0.8, 0.1, 0.1, name="two_rci, second")])
    assert "one cell is enough for two_rci, first" in said
    assert "only the whole image answers two_rci, second" in said


def test_occlude_shows_its_drop():
    spec = parse("gqa_occlude2")
    lines = table([Shown(spec.name, {**spec.described(), "metric": "acc"}, {"acc": 0.8, "acc_drop2": 0.25, "records": 10})]).splitlines()
    assert lines[0].split()[-1] == "drop_2"
    assert lines[2].split() == ["gqa_occlude2", "acc", "10", "n/a", "0.800", "0.250"]


def test_a_run_shows_what_it_computed(tmp_path):
    """Cell 1 knows, the others guess: 300 docs leave no doubt that cell 1 earns more than an even share."""
    path = write_run(tmp_path, {"toy_rci2": mc_run()})
    (shown,) = load(path)
    metrics = shown.metrics
    row = table([shown]).splitlines()[2]
    assert f"{metrics['rci2']:+.3f} [{metrics['rci2_low']:+.3f}, {metrics['rci2_high']:+.3f}]" in row
    assert row.endswith(f"{metrics['rci2_adj']:+.3f}, assumed null")
    text = cell_tables([shown]).splitlines()
    assert "p = 0.001" in text[0]
    assert "*" in text[1].split()[0]
    line = chances([shown]).splitlines()[2].split()
    assert line[4] == "valid"
    assert line[5:8] == ["n/a"] * 3  # nothing was asked on a wrong image
    assert line[8] == "0.250"  # a random one of four letters
    assert any("assumed null" in line for line in warnings([shown]))
    assert any("not checked whether the answers depend on the image" in line for line in warnings([shown]))


def test_an_index_below_chance_is_said_not_shown(tmp_path):
    (shown,) = load(write_run(tmp_path, {"toy_rci2": mc_run(know_full=0.0)}))
    assert "near chance" in table([shown])
    assert "toy cannot be read" in meaning([shown])


def test_groups_and_averages_are_tables(tmp_path):
    path = write_run(tmp_path, {"a_rci2": mc_run(n=60, seed=1), "b_rci2": mc_run(n=60, seed=2)}, groups={"g": ["a_rci2", "b_rci2"]})
    analyzed = [recompute(run) for run in recompute_load(path)]
    assert pooled_table(groups(path, analyzed)).splitlines()[2].split()[:3] == ["g", "2x2", "120"]
    assert "SD between runs" in averaged_table(average([analyzed, analyzed]))
