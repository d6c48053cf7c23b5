"""A plugin of lmms-eval with a model and two tasks of the atlas: ``LMMS_EVAL_PLUGINS=benchmarks.own``, with the checkout on ``PYTHONPATH``.

A folder ``NAME`` with ``NAME/models`` and ``NAME/tasks`` is all that lmms-eval asks of a plugin. A model of your own fits
into the same two folders.
"""
