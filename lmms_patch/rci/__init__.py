"""RCI and PCRI, the spatial index: from the records of a task to its numbers.

Papers: "RCI: A Score for Evaluating Global and Local Reasoning in Multimodal Benchmarks"
(https://arxiv.org/abs/2509.23673) and "PCRI: Measuring Context Robustness in Multimodal Models for Enterprise
Applications" (https://arxiv.org/abs/2509.23879).
"""
