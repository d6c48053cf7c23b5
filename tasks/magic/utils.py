"""What the task files of MAGIC name: docs, prompts, scorer, aggregations.

All of it is in lmms_patch.harness (docs/magic.md).
"""

from lmms_patch.harness.magic import docs
from lmms_patch.harness.magic.tasks import mean, micro_f1, micro_precision, micro_recall, process_results, unbound

__all__ = ["mean", "micro_f1", "micro_precision", "micro_recall", "process_results", "unbound"]


def every_box(_):
    """Return the data of MAGIC_DATA with all boxes."""
    return docs.docs("all")


def relevant(_):
    """Return the data of MAGIC_DATA with the relevant boxes."""
    return docs.docs("relevant")


def nobox(_):
    """Return the data of MAGIC_DATA without boxes."""
    return docs.docs("none")


def selfheal(_):
    """Return the wrong runs of MAGIC_DATA to go on from."""
    return docs.docs("selfheal")


def mosaic(_):
    """Return the embedded data with all boxes."""
    return docs.docs("all", docs.MOSAIC)


def mosaic_relevant(_):
    """Return the embedded data with the relevant boxes."""
    return docs.docs("relevant", docs.MOSAIC)


def mosaic_nobox(_):
    """Return the embedded data without boxes."""
    return docs.docs("none", docs.MOSAIC)


def mosaic_selfheal(_):
    """Return the wrong runs of the embedded data to go on from."""
    return docs.docs("selfheal", docs.MOSAIC)


def doc_to_visual(doc):
    """Return the images of in-context examples, then the doc's own with its boxes drawn."""
    return docs.visuals(doc)


def doc_to_text(doc, lmms_eval_specific_kwargs=None):
    """Return the prompt; for Self-Heal with the steps to go on from."""
    return docs.prompt(doc)


def doc_to_messages(doc, lmms_eval_specific_kwargs=None):
    """Return the conversation; for Self-Heal with the steps to go on from as a turn of the model's own, where the adapter continues it."""
    return docs.messages(doc, (lmms_eval_specific_kwargs or {}).get("prefill", "prompt"))
