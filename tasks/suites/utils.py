"""HallusionBench (Guan et al. 2024) by the word yes or no, without a judge."""

import re

LABELS = {"0": "no", "1": "yes"}


def doc_to_visual(doc):
    """Return the figure, as a list of one."""
    return [doc["image"].convert("RGB")]


def doc_to_text(doc, lmms_eval_specific_kwargs=None):
    """Return the question, and what to answer."""
    kwargs = lmms_eval_specific_kwargs or {}
    return f"{kwargs.get('pre_prompt', '')}{doc['question']}{kwargs.get('post_prompt', '')}"


def doc_to_target(doc):
    """Return "yes" or "no"."""
    return LABELS[str(doc["gt_answer"])]


def process_results(doc, results):
    """One item for the three accuracies, with the keys of its question and its figure.

    And whether the answer was neither yes nor no.
    """
    prediction, truth = said(results[0]), doc_to_target(doc)
    place = [str(doc[field]) for field in ("category", "subcategory", "set_id")]
    item = {
        "question": "_".join([*place, str(doc["question_id"])]),
        "figure": "_".join([*place, str(doc["figure_id"])]),
        "prediction": prediction,
        "ground_truth": truth,
        "score": float(prediction == truth),
    }
    return {"aAcc": item, "qAcc": item, "fAcc": item, "unclear": float(prediction == "unclear")}


def said(answer):
    """Return "yes" or "no" if the answer begins with it, or has only that one of the two words; else "unclear"."""
    words = re.findall(r"[a-z']+", answer.lower())
    found = {"yes", "no"} & set(words)
    if words and words[0] in found:
        return words[0]
    return found.pop() if len(found) == 1 else "unclear"


def per_answer(items):
    """Share of right answers."""
    return sum(item["score"] for item in items) / len(items)


def per_question(items):
    """Share of questions that are answered rightly on all their figures."""
    return _all_right(items, "question")


def per_figure(items):
    """Share of figures of which all questions are answered rightly."""
    return _all_right(items, "figure")


def _all_right(items, key):
    right = {}
    for item in items:
        right[item[key]] = right.get(item[key], True) and item["score"] == 1
    return sum(right.values()) / len(right)
