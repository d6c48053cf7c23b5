"""The report of finished runs: one folder with a page, figures and tables. Needs neither model, data nor lmms_eval."""
