"""Prompt, clip and score of the mosaic_video tasks."""

from pathlib import Path

CLIPS = Path(__file__).resolve().parent / "clips"


def doc_to_visual(doc):
    """Return the path of the clip, as a list of one."""
    return [str(CLIPS / doc["video"])]


def doc_to_text(doc, lmms_eval_specific_kwargs=None):
    """Return the question."""
    return doc["question"]


def process_results(doc, results):
    """1.0 if the answer is the gold word, else 0.0."""
    return {"acc": float(normalise(results[0]) == doc["answer"])}


def normalise(answer):
    """Lower case, without blanks around it and without a final full stop."""
    return answer.strip().lower().removesuffix(".")
