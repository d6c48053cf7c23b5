"""AMBER's yes/no questions (Wang et al. 2023, arXiv:2311.07397), from the authors' folder. See docs/amber.md."""

import json
import os
import re
from pathlib import Path

import datasets

from lmms_patch.errors import PatchError
from lmms_patch.harness.refuse import refuse

DIMENSIONS = {
    "discriminative-hallucination": "existence",
    "discriminative-attribute-state": "attribute-state",
    "discriminative-attribute-number": "attribute-number",
    "discriminative-attribute-action": "attribute-action",
    # The authors write the first for "yes" and the second for "no": the type itself tells the answer.
    "discriminative-relation": "relation",
    "relation": "relation",
}
IMAGE_FOLDERS = ("image", "images", "data/image", "data/images", ".")


def existence(_):
    """Docs on whether an object is in the image."""
    return questions("existence")


def attribute(_):
    """Docs on state, number and action."""
    return questions("attribute")


def relation(_):
    """Docs on whether two objects touch."""
    return questions("relation")


def discriminative(_):
    """All docs."""
    return questions("")


def questions(dimension):
    """Return the docs of a dimension (all: the empty text), joined with their annotations by id.

    Columns: id, image, image_name, question, truth ("yes" or "no"), dimension.
    """
    root = folder()
    asked = _read(root / "data/query/query_discriminative.json")
    known = {row["id"]: row for row in _read(root / "data/annotations.json")}
    docs = [doc for row in asked if (doc := _doc(row, known.get(row["id"])))["dimension"].startswith(dimension)]
    if not docs:
        _stop(f"no questions on {dimension or 'anything'} in {root}")
    pictures = _images(root, {doc["image_name"] for doc in docs})
    features = datasets.Features(
        {
            **{name: datasets.Value("string") for name in docs[0]},
            "id": datasets.Value("int64"),
            "image": datasets.Image(),
        }
    )
    return datasets.Dataset.from_list(
        [{**doc, "image": str(pictures / doc["image_name"])} for doc in docs], features=features
    )


def folder():
    """Return the folder of the environment variable AMBER_DIR, or the data set of the hub that AMBER_HUB names."""
    root, hub = os.environ.get("AMBER_DIR"), os.environ.get("AMBER_HUB")
    if not root and hub:
        from huggingface_hub import snapshot_download

        root = snapshot_download(hub, repo_type="dataset")
    if not root:
        _stop(
            "set AMBER_DIR to a folder with data/query, data/annotations.json and the images of github.com/junyangwang0410/AMBER"
        )
    return Path(root).expanduser().resolve()


def _read(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        _stop(f"{path} cannot be read: {error}")


def _doc(row, annotation):
    truth = str((annotation or {}).get("truth")).strip().lower()
    dimension = DIMENSIONS.get((annotation or {}).get("type"))
    if truth not in ("yes", "no") or dimension is None:
        _stop(f"question {row['id']} has no yes/no annotation: {annotation}")
    return {
        "id": row["id"],
        "image_name": row["image"],
        "question": row["query"],
        "truth": truth,
        "dimension": dimension,
    }


def _images(root, names):
    """Return the subfolder that holds all the images."""
    missing = {place: sorted(name for name in names if not (root / place / name).is_file()) for place in IMAGE_FOLDERS}
    place = min(IMAGE_FOLDERS, key=lambda place: len(missing[place]))
    if missing[place]:
        _stop(f"{len(missing[place])} images are missing, such as {root / place / missing[place][0]}")
    return root / place


def _stop(message):
    refuse(PatchError(f"amber: {message}; see docs/amber.md"))


def doc_to_visual(doc):
    """Return the image, as a list of one."""
    return [doc["image"].convert("RGB")]


def doc_to_text(doc, lmms_eval_specific_kwargs=None):
    """Return the question, and what to answer."""
    kwargs = lmms_eval_specific_kwargs or {}
    return f"{kwargs.get('pre_prompt', '')}{doc['question']}{kwargs.get('post_prompt', '')}"


def process_results(doc, results):
    """One item for accuracy, precision, recall and F1, and whether the answer was neither yes nor no."""
    prediction = said(results[0])
    item = {
        "question_id": doc["id"],
        "dimension": doc["dimension"],
        "prediction": prediction,
        "ground_truth": doc["truth"],
        "score": float(prediction == doc["truth"]),
    }
    named = dict.fromkeys(("amber_accuracy", "amber_precision", "amber_recall", "amber_f1"), item)
    return {**named, "amber_unclear": float(prediction == "unclear")}


def said(answer):
    """Return "yes" or "no" if the answer begins with it, or has only that one of the two words; else "unclear"."""
    words = re.findall(r"[a-z']+", answer.lower())
    found = {"yes", "no"} & set(words)
    if words and words[0] in found:
        return words[0]
    return found.pop() if len(found) == 1 else "unclear"


def accuracy(items):
    """Share of right answers."""
    return sum(item["score"] for item in items) / len(items)


def precision(items):
    """Of the questions answered "no", the share whose truth is "no"; 0 where there is none."""
    return _share(items, "prediction")


def recall(items):
    """Of the questions whose truth is "no", the share answered "no"; 0 where there is none."""
    return _share(items, "ground_truth")


def f1(items):
    """2PR / (P + R); 0 where both are 0."""
    p, r = precision(items), recall(items)
    return 2 * p * r / (p + r) if p + r else 0.0


def _share(items, key):
    """Of the items with "no" under a key, the share with "no" under both: "no" is AMBER's positive label, a hallucination that is found."""
    no = [item for item in items if item[key] == "no"]
    return sum(item["prediction"] == item["ground_truth"] for item in no) / len(no) if no else 0.0
