import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.stats.index import index


@pytest.mark.parametrize(
    ("fip", "mpp", "rci"),
    [  # RCI paper, human study (Table 4): accuracies of people, and 1 − MPP/FIP by hand
        (0.93, 0.66, 1 - 66 / 93),
        (0.80, 0.82, -0.025),
        (0.46, 0.73, 1 - 73 / 46),
    ],
)
def test_human_study(fip, mpp, rci):
    assert index(fip, mpp).value == pytest.approx(rci)
    assert index(fip, mpp).gap == pytest.approx(fip - mpp)


@pytest.mark.parametrize(
    ("fip", "mpp", "says"),
    [(0.0, 0.5, "FIP is 0"), (None, 0.5, "FIP"), (0.5, None, "MPP"), (float("nan"), 0.5, "FIP"), (0.5, float("inf"), "MPP"), (-1.0, 0.5, "negative")],
)
def test_no_index_without_a_reason(fip, mpp, says):
    result = index(fip, mpp)
    assert result.value is None
    assert says in result.reason


def test_no_index_of_an_error_rate():
    assert index(0.2, 0.1, higher_is_better=False).value is None


@given(st.floats(0.01, 100), st.floats(0, 100), st.floats(0.01, 100))
def test_the_scale_of_the_metric_does_not_matter(fip, mpp, scale):
    assert index(fip * scale, mpp * scale).value == pytest.approx(index(fip, mpp).value, rel=1e-9, abs=1e-9)
