"""Result files in the layout of VLMEvalKit."""

import csv
import json
import pickle

import openpyxl

LETTERS = "ABCD"


def write(path, rows, sheets=()):
    """Write rows as VLMEvalKit dumps a table of this ending; ``sheets``: more sheets, by name, of an .xlsx."""
    path.parent.mkdir(parents=True, exist_ok=True)
    names = list(dict.fromkeys(name for row in rows for name in row))
    if path.suffix == ".xlsx":
        book = openpyxl.Workbook()
        for sheet, own in ((book.active, rows), *((book.create_sheet(name), more) for name, more in sheets)):
            heads = list(dict.fromkeys(name for row in own for name in row))
            for cells in (heads, *([row.get(name) for name in heads] for row in own)):
                sheet.append(cells)
        book.save(path)
    elif path.suffix in (".tsv", ".csv"):
        with path.open("w", newline="", encoding="utf-8") as file:
            out = csv.DictWriter(file, names, delimiter="\t" if path.suffix == ".tsv" else ",", quoting=csv.QUOTE_ALL)
            out.writeheader()
            out.writerows(rows)
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows, indent=4, ensure_ascii=False))
    else:
        path.write_bytes(pickle.dumps(rows))
    return path


def question(i, gold="A", said="A", **more):
    """A row of a judged multiple-choice table."""
    options = {letter: f"thing {letter}" for letter in LETTERS}
    return {
        "index": i,
        "question": f"Which? {i}",
        **options,
        "answer": gold,
        "prediction": said,
        "category": "ab"[int(i) % 2],
        "hit": int(gold == said),
        **more,
    }


def export(
    folder,
    records,
    n=2,
    model="m",
    dataset="Toy",
    name="{dataset}_patch_{n}_{row}_{col}",
    ending=".xlsx",
    judge="_openai_result",
    start=0,
    more=None,
):
    """Write the records of a four-option task as VLMEvalKit leaves an RCI run: a table for the full image, and one for each cell."""
    for place, view in enumerate(records[0]["views"]):
        own = name.format(
            dataset=dataset,
            n=n,
            row=view.get("row", 0) + start,
            col=view.get("col", 0) + start,
            cell=view.get("cell", 1) - 1 + start,
        )
        rows = []
        for record in records:
            gold, right = record["answer"]["gold"], record["views"][place]["scores"]["acc"] == 1.0
            said = gold if right else LETTERS[(LETTERS.index(gold) + 1) % 4]
            fields = {key: record["fields"][key] for key in record["fields"]}
            asked = {"question": "Which?", **dict(zip(LETTERS, "uvwx", strict=True))}  # as making.runs asks
            rows.append({**question(record["doc_id"], gold, said), **asked, **fields, **(more or {})})
        write(folder / model / f"{model}_{dataset if 'cell' not in view else own}{judge}{ending}", rows)
    return folder
