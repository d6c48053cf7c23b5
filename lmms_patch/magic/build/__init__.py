"""Algorithm 1: from questions, scene graphs and saliency maps to a dataset."""
