"""Prompt, image and score of the mosaic tasks."""


def doc_to_visual(doc):
    """Return the sheet, as a list of one RGB image."""
    return [doc["image"].convert("RGB")]


def doc_to_text(doc, lmms_eval_specific_kwargs=None):
    """Return the question; a multiple-choice one carries its options A to D."""
    return doc["question"]


def process_results(doc, results):
    """1.0 if the answer is the gold word, else 0.0."""
    return {"acc": float(normalise(results[0]) == normalise(doc["answer"]))}


def normalise(answer):
    """Lower case, without blanks around it and without a final full stop."""
    return answer.strip().lower().removesuffix(".")
