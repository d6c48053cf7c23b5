"""Two finished runs side by side, doc by doc: models, a run and its blind run, MAGIC variants."""
