"""MAGIC: does a model look at the right regions while it reasons? Datasets, prompts, responses and their scores.

The tasks lie in tasks/magic.

Paper: "MAGIC: Evaluating Multimodal Cognition Toward Grounded Visual Reasoning" (anonymous, under review; "the paper"
in this package).
"""
