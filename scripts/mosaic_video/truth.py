"""Print what mosaic_reader scores on parts of the clips, cut by a few lines of NumPy: the table of tasks/mosaic_video/README.md.

python scripts/mosaic_video/truth.py
"""

import argparse
import json
from pathlib import Path

import numpy as np
from lmms_patch.harness.models.mosaic_reader import Reader, frames_of

HERE = Path(__file__).resolve().parents[2] / "tasks" / "mosaic_video"
FAMILIES = ("moment", "count", "order", "still", "text")
FRAMES = 32


def views(frames: np.ndarray, rng: np.random.Generator) -> dict[str, list[np.ndarray]]:
    """Return the parts of a clip (F, height, width, 3) by the name of the view.

    A view of several parts counts the best of them.
    """
    total, height, width = frames.shape[:3]
    segments = {k: [frames[total * i // k : total * (i + 1) // k] for i in range(k)] for k in (2, 4, 9)}
    return {
        "full": [frames],
        **{f"best of {k}": parts for k, parts in segments.items()},
        **{f"{k} frames": [frames[np.linspace(0, total - 1, k, dtype=int)]] for k in (2, 4, 8)},
        "middle": [frames[total // 2 :][:1]],
        "shuffled": [np.concatenate([segments[4][i] for i in rng.permutation(4)])],
        "reversed": [frames[::-1]],
        "best 2×2": [
            frames[:, height * r // 2 : height * (r + 1) // 2, width * c // 2 : width * (c + 1) // 2]
            for r in range(2)
            for c in range(2)
        ],
        "no clip": [frames[:0]],
    }


def rows(family: str) -> list[dict]:
    """Return the questions of a family."""
    return [
        json.loads(line)
        for line in (HERE / "data" / f"mosaic_video_{family}.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def scores(docs: int) -> dict[str, dict[str, float]]:
    """Return the share of right answers by family and view, over the first docs of each family."""
    reader, found = Reader(), {}
    for family in FAMILIES:
        asked, rng = rows(family)[:docs], np.random.default_rng(0)
        right: dict[str, int] = {}
        for row in asked:
            frames = np.stack(frames_of(str(HERE / "clips" / row["video"]), FRAMES))
            for name, parts in views(frames, rng).items():
                right[name] = right.get(name, 0) + any(
                    reader.answer(row["question"], part) == row["answer"] for part in parts
                )
        found[family] = {name: count / len(asked) for name, count in right.items()}
    return found


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--docs", type=int, default=80, help="questions of each family (default 80)")
    found = scores(parser.parse_args().docs)
    names = list(found["moment"])
    print("\n".join(["| task | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]))
    for family, share in found.items():
        print(f"| `mosaic_video_{family}` | " + " | ".join(f"{share[name]:.3g}" for name in names) + " |")


if __name__ == "__main__":
    main()
