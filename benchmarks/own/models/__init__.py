"""The models of the plugin: lmms-eval takes ``--model NAME`` from ``benchmarks.own.models.NAME``."""

AVAILABLE_MODELS = {"ocr_reader": "OcrReader"}
