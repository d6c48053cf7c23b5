"""The builder of MAGIC datasets: from questions, scene graphs and saliency maps to a dataset (Algorithm 1 of the MAGIC paper)."""
