"""The scoring of MAGIC: from a model's response to its scores, with and without a judge."""
