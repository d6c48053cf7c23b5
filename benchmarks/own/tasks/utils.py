"""Image and score of the tasks on local docs."""

import re


def doc_to_visual(doc):
    """Return the image of a doc, as a list of one RGB image."""
    return [doc["image"].convert("RGB")]


def process_results(doc, results):
    """Return 1.0 where the answer is the gold, else 0.0."""
    return {"acc": float(normalise(results[0]) == normalise(doc["answer"]))}


def normalise(answer):
    """Return an answer in lower case, without spaces, brackets and a full stop at its end: "{4}" becomes "4", "(B)." becomes "b"."""
    return re.sub(r"[\s(){}\[\]]", "", answer).lower().removesuffix(".")
