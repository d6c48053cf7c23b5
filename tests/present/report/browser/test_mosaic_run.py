"""A real run, from the harness's command line to the page in a browser: three families, two models, images through the harness."""

import json
import os
import re
import shutil

import pytest
import yaml

from lmms_patch.app import api
from lmms_patch.present.report import figures
from lmms_patch.resources import folder as resource
from tests.harness import warm
from tests.making.files import sealed
from tests.sizes import size

FAMILIES = ("local", "count", "text")
DOCS = size(3, 16)
HOSTILE = "<script>alert(1)</script>"

pytestmark = pytest.mark.cli


def another_model(into):
    """The embedded model with a little noise on its weights: a worse one, from a folder of its own."""
    import torch
    from safetensors.torch import load_file, save_file

    shutil.copytree(resource("tasks") / "mosaic" / "model", into)
    stream = torch.Generator().manual_seed(0)
    for file in into.glob("*.safetensors"):
        weights = load_file(file)
        noisy = {
            name: (w + 0.2 * w.float().std() * torch.randn(w.shape, generator=stream)).to(w.dtype) if w.ndim > 1 else w
            for name, w in weights.items()
        }
        save_file(noisy, file, metadata={"format": "pt"})
    return into


def run(*wanted):
    """Run the harness several times by one start: (output folder, model arguments) each.

    A few docs of a task suffice for a gallery of every kind.
    """
    tasks = ",".join(f"mosaic_{family}_{kind}" for family in FAMILIES for kind in ("rci", "blind"))
    shared = {
        "model": "mosaic_vlm",
        "tasks": tasks,
        "limit": DOCS,
        "batch_size": "16",
        "log_samples": True,
        "verbosity": "WARNING",
    }
    config = wanted[0][0].parent / "runs.yaml"
    config.write_text(yaml.safe_dump([{**shared, "output_path": str(out), "model_args": args} for out, args in wanted]))
    status, printed, said = warm.run(["lmms-eval", "--config", str(config)], os.environ)
    assert status == 0, (printed + said)[-3000:]


@pytest.fixture(scope="module")
def report(browser, indexed, tmp_path_factory):
    """The report's folder; one task's answers to the full image are hostile, those to its cells long."""
    work = tmp_path_factory.mktemp("mosaic")
    run((work / "a", ""), (work / "b", f"pretrained={another_model(work / 'other-model')}"))
    log = next((work / "a").rglob("*_samples_mosaic_local_rci.jsonl"))
    lines = [json.loads(text) for text in log.read_text().splitlines()]
    for line in lines:
        line["filtered_resps"][0] = HOSTILE
        line["filtered_resps"][1:] = ["y" * 100_000] * (len(line["filtered_resps"]) - 1)
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    sealed(next((work / "a").rglob("*_results.json")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "MOST_HEATMAPS", size(2, 30))
        found = api.report([work], work / "report", with_images=True)
    assert not found.warnings
    return work / "report" / "index.html", found


def test_it_has_both_models_all_families_and_the_images(report):
    file, found = report
    assert {(one.model, one.base, one.kind.name) for one in found.entries} == {
        (model, f"mosaic_{family}", kind)
        for model in ("mosaic_vlm", "other-model")
        for family in FAMILIES
        for kind in ("rci", "blind")
    }
    assert len(found.examples) > 10
    assert all(one.image for one in found.examples)
    assert file.stat().st_size < 10e6


def test_it_sorts_filters_darkens_and_turns_its_tabs(report, open_page):
    """Silence on the console and no request but of the file itself are asserted by ``open_page``."""
    page = open_page(file=report[0])
    rows = page.locator("#results-table tbody tr:visible")
    assert rows.count() == 4 * len(FAMILIES)  # two grids of each family, twice; blind runs stand beside them
    button = page.locator("#results-table thead th", has_text=re.compile(r"^\s*RCI")).get_by_role("button")
    button.click()
    shown = [
        v
        for v in page.locator("#results-table tbody tr > :nth-child(8)").evaluate_all(
            "cells => cells.map(c => c.dataset.value)"
        )
        if v
    ]
    assert [float(v) for v in shown] == sorted(float(v) for v in shown)
    page.locator('input[data-filters="results-table"]').fill("other-model count")
    assert rows.count() == 2
    page.get_by_label("Dark", exact=True).check(force=True)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 26)"
    page.locator('input[data-filters="results-table"]').fill("")
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    tabs = page.get_by_role("tab")
    assert tabs.count() >= 2
    second = tabs.nth(1)
    second.click()
    assert second.get_attribute("aria-selected") == "true"


def test_its_gallery_filters_and_what_was_said_stays_text(report, open_page):
    page = open_page(file=report[0])
    page.locator("#examples > summary").click()
    cards = page.locator("article.card:visible")
    every = cards.count()
    page.locator("select[data-gallery=rule]").select_option(label="local")
    assert 0 < cards.count() < every
    assert page.get_by_text(HOSTILE).count() > 0
    assert "y" * 1000 not in page.content()
    assert "(100,000 characters)" in page.content()


def test_it_has_no_serious_accessibility_fault(report, open_page, axe):
    """At one size: ``test_report.py`` looks at both, on a page with more kinds of results."""
    page = open_page("narrow", file=report[0])
    found = [v["id"] for v in axe.run(page).response["violations"] if v["impact"] in ("serious", "critical")]
    assert found == []


@pytest.mark.parametrize("size", ["wide", "narrow"])
def test_it_never_scrolls_sideways(report, open_page, size):
    page = open_page(size, file=report[0])
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
