"""The files of a finished run, as the harness lays them out: every made run is written here."""

import json

DATE = "2026-01-01T00-00-00.000000"


def described(spec, metric="acc"):
    """What the config of a wrapped task says of it."""
    return {"lmms_patch": {"schema": 1, "pixels": 1, **spec.described(), "metric": metric}}


def lines_of(records, **more):
    """Return the lines of a wrapped task's sample log, one for each record.

    ``more`` gives further keys, which are the same in every line.
    """
    return [{"doc_id": one["doc_id"], **more, "patch": one} for one in records]


def write_files(folder, tasks, *, date=DATE, change=None, **about):
    """Write the results file and the sample logs of a run; the results file's path.

    ``tasks`` is ``{name: (values, config, lines)}``: values by metric, of the filter pipeline ``none`` where a name
    tells no other; lines None: not logged. ``change`` may alter the results file's content before it is written;
    ``about`` is more of that content. The harness's count of its samples is that of the docs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    counts = {
        name: len({line.get("doc_id") for line in lines}) for name, (_, _, lines) in tasks.items() if lines is not None
    }
    offset = int((about.get("config") or {}).get("offset") or 0)
    samples = {name: {"original": docs + offset, "effective": docs + offset} for name, docs in counts.items()}
    data = {"results": {}, "configs": {}, "group_subtasks": {}, "date": date, "n-samples": samples, **about}
    for name, (values, config, lines) in tasks.items():
        data["results"][name] = {
            key if "," in key or key == "alias" else f"{key},none": value for key, value in values.items()
        }
        data["configs"][name] = config
        if lines is not None:
            (folder / f"{date}_samples_{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if change:
        change(data)
    path = folder / f"{date}_results.json"
    path.write_text(json.dumps(data))
    return path
