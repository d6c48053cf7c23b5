"""The two model classes: densities against counting leaves by hand, and what stands in where nothing can be learned."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from lmms_patch.tst.features import Features
from lmms_patch.tst.trees import ModelSettings, fit_number, fit_right
from tests.tst.worlds import FEW_TREES, SMALL_FOREST

BOTH = pytest.mark.parametrize("settings", [FEW_TREES, SMALL_FOREST], ids=["boosting", "forest"])


def features(values, inner):
    values = np.asarray(values, np.float32)
    return Features(values, tuple(f"f{j}" for j in range(values.shape[1])), np.asarray(inner, np.intp))


def alone(found):
    """Each row is an item of its own, as a candidate that may be none of the answers."""
    return np.arange(len(found.inner))


def probability(fitted, values):
    return fitted.probability(values, np.arange(len(values)), False)


def numbers(n=120, seed=0):
    """Three clusters of x, each with golds of its own: values 0..5, two to a cluster. The last 20 are held out."""
    stream = np.random.default_rng(seed)
    cluster = stream.integers(0, 3, n)
    value = 2 * cluster + stream.integers(0, 2, n)
    x = np.column_stack([cluster + 0.1 * stream.standard_normal(n), stream.standard_normal(n)])
    x[::17, 1] = np.nan
    inner = np.where(np.arange(n) < n - 20, np.arange(n) % 5, -1)
    return features(x, inner), value.astype(float), value, cluster


def test_the_forests_density_is_the_training_golds_in_the_leaves(monkeypatch):
    """Brute force: walk each tree, count the training values in the leaf, divide by their number, add up."""
    found, target, value, _ = numbers()
    forests = []
    fit = RandomForestRegressor.fit
    monkeypatch.setattr(RandomForestRegressor, "fit", lambda self, *a, **k: forests.append(self) or fit(self, *a, **k))
    density = fit_number(found, target, value, 6, ModelSettings("forest", 4, depth=3), 0)
    filled = np.nan_to_num(found.values, nan=-1e6)
    train = np.flatnonzero(found.inner >= 0)
    asked = np.flatnonzero(found.inner < 0)
    expected = np.zeros((len(asked), 6))
    for tree in forests[0].estimators_:
        leaves = tree.apply(filled)
        for row, at in enumerate(asked):
            beside = [i for i in train if leaves[i] == leaves[at]]
            for i in beside:
                expected[row, value[i]] += 1 / len(beside)
    np.testing.assert_allclose(density.of(found.values[asked]), expected, atol=1e-5)
    assert density.importance.sum() == pytest.approx(1)


@BOTH
def test_the_density_is_on_the_values_of_the_own_cluster(settings):
    found, target, value, cluster = numbers()
    density = fit_number(found, target / target.std(), value, 6, settings, 0)
    weights = density.of(found.values[-20:])
    weights = weights / weights.sum(axis=1, keepdims=True)
    for own, row in zip(cluster[-20:], weights, strict=True):
        assert row[2 * own : 2 * own + 2].sum() > 0.5  # 1/3 by chance


@BOTH
def test_the_golds_of_held_out_items_are_not_read(settings):
    found, target, value, _ = numbers()
    held = found.inner < 0
    first = fit_number(found, target, value, 6, settings, 0).of(found.values)
    second = fit_number(found, np.where(held, np.nan, target), np.where(held, -1, value), 6, settings, 0).of(
        found.values
    )
    np.testing.assert_array_equal(first, second)
    right = (value % 2).astype(float)
    a = probability(fit_right(found, right, alone(found), settings, 0), found.values)
    b = probability(fit_right(found, np.where(held, np.nan, right), alone(found), settings, 0), found.values)
    np.testing.assert_array_equal(a, b)


@BOTH
def test_one_value_alone_is_certain(settings):
    found = features(np.random.default_rng(0).standard_normal((30, 3)), [*range(5)] * 5 + [-1] * 5)
    weights = fit_number(found, np.zeros(30), np.zeros(30, np.intp), 1, settings, 0).of(found.values)
    assert weights.shape == (30, 1)
    assert (weights > 0).all()


@BOTH
def test_importance_is_of_the_feature_that_matters(settings):
    stream = np.random.default_rng(0)
    x = stream.standard_normal((400, 3))
    found = features(x, np.arange(400) % 5)
    fitted = fit_right(found, (x[:, 1] > 0).astype(float), alone(found), settings, 0)
    assert fitted.importance.sum() == pytest.approx(1)
    assert fitted.importance[1] > 0.8
    assert len(probability(fitted, found.values[:0])) == 0


@BOTH
def test_threads_change_nothing_at_all(settings):
    stream = np.random.default_rng(0)
    x = stream.standard_normal((300, 5))
    found = features(x, np.arange(300) % 5)
    right = (x[:, 0] + stream.standard_normal(300) > 0).astype(float)
    many = ModelSettings(settings.model, settings.trees, threads=3)
    for _ in range(4):
        a, b = (probability(fit_right(found, right, alone(found), own, 5), found.values) for own in (settings, many))
        np.testing.assert_array_equal(a, b)
    value = np.searchsorted([-1, 0, 1], x[:, 1])
    a, b = (fit_number(found, x[:, 1], value, 4, own, 5).of(found.values) for own in (settings, many))
    np.testing.assert_array_equal(a, b)


def test_published_size():
    assert (ModelSettings("forest").size, ModelSettings("forest").depth) == (1000, 20)
    assert ModelSettings("forest", 7).size == 7
