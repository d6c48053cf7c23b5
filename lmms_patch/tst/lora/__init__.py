"""The diagnostic that tunes a language model. The only part beside the harness that needs torch."""
