"""One place that asks the model: in portions, each written down as it comes, so that a killed run loses one portion."""
