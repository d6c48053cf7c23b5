"""Write the data of mosaic_video: clips, questions, and the scans that mosaic_reader learns from.

    python scripts/mosaic_video/build_video.py
    python scripts/mosaic_video/build_video.py --docs 20 --seed 7 --out FOLDER     # other clips, as many as are wanted

Same seed, same scenes and questions. The bytes of the clips depend on the version of the encoder. Only scans of the
test part of mosaic's split appear in clips; those of the training part go into scans.npz.
"""

import argparse
import json
import shutil
import sys
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import av
import numpy as np
from PIL import Image, ImageDraw

sys.path.append(str(Path(__file__).resolve().parents[1] / "mosaic"))

from questions import NUMBER_WORDS, TEXT, yes_no
from scans import TILE, Print, SpriteBank, load_scans

OUT = Path(__file__).resolve().parents[2] / "tasks" / "mosaic_video"
DOCS, SEED = 80, 2027  # those of the shipped files
WIDTH, HEIGHT, FRAMES, RATE = 160, 120, 64, 8  # pixels, frames, frames per second
ACROSS, DOWN = 4, 4  # slots, each 40x30 px
QUARTER = FRAMES // 4
SHORTEST = 8  # frames; at least three of them are among 32 uniform frames
BOX = 44  # outer side of a box in px; a box lies in the middle of a quadrant of the frame
INK, COLOURS = (32, 32, 40), {"red": (225, 30, 40), "blue": (40, 60, 225)}
STYLE = Print(20, 22)
MARKS = ("disc", "square", "bar", "triangle")


class Event(NamedTuple):
    """A digit, or a mark (value None), from frame ``start`` up to ``stop``: its ink (28, 28) lies around the pixel (x, y)."""

    value: int | None
    tile: np.ndarray
    x: int
    y: int
    start: int
    stop: int


class Scene(NamedTuple):
    """events: all that appears; boxes: colour and the pixel of the middle of each box."""

    events: list[Event]
    boxes: dict[str, tuple[int, int]]


class Question(NamedTuple):
    """text, answer, and its form: open or yesno."""

    text: str
    answer: str
    form: str


# --- scenes ---------------------------------------------------------------------------------------


def span(first: int, last: int, rng: np.random.Generator) -> tuple[int, int]:
    """Return the start and stop of an event of 8 to 16 frames, within the frames from ``first`` up to ``last``."""
    length = int(rng.integers(SHORTEST, min(QUARTER, last - first) + 1))
    start = int(rng.integers(first, last - length + 1))
    return start, start + length


def quarter(number: int, rng: np.random.Generator) -> tuple[int, int]:
    """Return the start and stop of an event within a quarter of the clip."""
    return span(number * QUARTER, (number + 1) * QUARTER, rng)


def in_slot(slot: int, rng: np.random.Generator) -> tuple[int, int]:
    """Return a pixel near the middle of a slot."""
    x, y = (slot % ACROSS * 2 + 1) * WIDTH // ACROSS // 2, (slot // ACROSS * 2 + 1) * HEIGHT // DOWN // 2
    return x + int(rng.integers(-6, 7)), y + int(rng.integers(-2, 3))


def quadrant_of(slot: int) -> int:
    """Return the quadrant of the frame that holds a slot."""
    return slot // ACROSS // 2 * 2 + slot % ACROSS // 2


def mark(rng: np.random.Generator) -> np.ndarray:
    """Return a plain shape that is no digit, (28, 28) coverage."""
    tile = Image.new("L", (TILE, TILE), 0)
    pen, half, middle = ImageDraw.Draw(tile), int(rng.integers(7, 11)), TILE // 2
    around = [middle - half, middle - half, middle + half, middle + half]
    kind = MARKS[int(rng.integers(len(MARKS)))]
    if kind == "disc":
        pen.ellipse(around, fill=255)
    elif kind == "square":
        pen.rectangle(around, fill=255)
    elif kind == "bar":
        pen.rectangle([middle - half, middle - half // 3, middle + half, middle + half // 3], fill=255)
    else:
        pen.polygon([(middle, middle - half), (middle - half, middle + half), (middle + half, middle + half)], fill=255)
    return np.asarray(tile)


def parade(count: int, bank: SpriteBank, rng: np.random.Generator) -> Scene:
    """Return a scene of ``count`` different digits: one in the first quarter, one in the last, the others anywhere.

    And of two or three marks.

    The first and the last digit lie in different quadrants of the frame, so neither a part of the time nor a quadrant
    shows all.
    """
    marks = int(rng.integers(2, 4))
    slots = rng.permutation(ACROSS * DOWN)[: count + marks].tolist()
    while quadrant_of(slots[0]) == quadrant_of(slots[1]):
        slots = rng.permutation(ACROSS * DOWN)[: count + marks].tolist()
    values = [*rng.permutation(10)[:count].tolist(), *[None] * marks]
    times = [quarter(0, rng), quarter(3, rng), *[span(0, FRAMES, rng) for _ in slots[2:]]]
    tiles = [mark(rng) if value is None else bank.draw(value, rng) for value in values]
    return Scene(
        [
            Event(*parts, *in_slot(slot, rng), *time)
            for *parts, slot, time in zip(values, tiles, slots, times, strict=True)
        ],
        {},
    )


def boxed(at: int, bank: SpriteBank, rng: np.random.Generator) -> Scene:
    """Return a scene of two boxes.

    The red one shows a digit in quarter ``at`` and marks in the others; the blue one shows a digit throughout.

    A third digit appears in quarter ``at`` outside the boxes.
    """
    red, blue, free = (
        (WIDTH // 4 * (1 + 2 * (quadrant % 2)), HEIGHT // 4 * (1 + quadrant // 2 * 2))
        for quadrant in rng.permutation(4)[:3].tolist()
    )
    values = rng.permutation(10)[:3].tolist()
    tiles = [bank.draw(value, rng) for value in values]
    near = [tuple(int(middle + rng.integers(-5, 6)) for middle in place) for place in (red, blue, free)]
    times = [quarter(at, rng), (0, FRAMES), quarter(at, rng)]
    events = [
        Event(value, tile, *place, *time) for value, tile, place, time in zip(values, tiles, near, times, strict=True)
    ]
    events += [Event(None, mark(rng), *red, *quarter(number, rng)) for number in range(4) if number != at]
    return Scene(events, {"red": red, "blue": blue})


# --- clips ----------------------------------------------------------------------------------------


def render(scene: Scene, rng: np.random.Generator) -> np.ndarray:
    """Return the frames of a scene, (64, 120, 160, 3) uint8, on light paper that has a weak texture of its own."""
    coarse = Image.fromarray(rng.integers(192, 219, (15, 20), dtype=np.uint8)).resize(
        (WIDTH, HEIGHT), Image.Resampling.BICUBIC
    )
    paper = (np.asarray(coarse, float)[:, :, None] + rng.integers(-6, 7, 3)).clip(0, 255)
    for colour, (x, y) in scene.boxes.items():
        outer, inner = ((slice(y - side, y + side), slice(x - side, x + side)) for side in (BOX // 2, BOX // 2 - 3))
        inside = paper[inner].copy()
        paper[outer] = COLOURS[colour]
        paper[inner] = inside
    frames = np.repeat(paper[None], FRAMES, 0)
    for event in scene.events:
        rows, columns = (np.flatnonzero(event.tile.any(axis)) for axis in (1, 0))
        ink = event.tile[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] / 255
        top, left = event.y - ink.shape[0] // 2, event.x - ink.shape[1] // 2
        part = frames[event.start : event.stop, top : top + ink.shape[0], left : left + ink.shape[1]]
        part += ink[:, :, None] * (np.array(INK) - part)
    return frames.round().astype(np.uint8)


def encode(frames: np.ndarray, path: Path) -> None:
    """Write frames as H.264 in mp4."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream(
            "libx264", rate=RATE, options={"crf": "23", "preset": "veryslow", "tune": "animation", "threads": "1"}
        )
        stream.width, stream.height, stream.pix_fmt, stream.time_base = WIDTH, HEIGHT, "yuv420p", Fraction(1, RATE)
        for pixels in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())


# --- questions ------------------------------------------------------------------------------------


def order(scene: Scene, is_first: bool) -> Question:
    """Return whether one digit appears before another: those of the first and of the last quarter, in the order that has the wanted answer."""
    named = [event.value for event in scene.events[:2]]
    first, second = named if is_first else named[::-1]
    return Question(f"Does the {first} appear before the {second}?", yes_no(is_first), "yesno")


def word(digit: int) -> Question:
    """Return a question whose wording gives the answer."""
    return Question(TEXT.format(word=NUMBER_WORDS[digit]), str(digit), "open")


def questions(kind: str, scene: Scene, number: int) -> dict[str, Question]:
    """Return the questions about a scene, by family. Golds are balanced over the numbers of the scenes."""
    if kind == "boxed":
        red, blue = (str(event.value) for event in scene.events[:2])
        return {
            "moment": Question("What digit appears in the red box?", red, "open"),
            "still": Question("What digit is in the blue box?", blue, "open"),
        }
    count = sum(event.value is not None for event in scene.events)
    return {
        "count": Question("How many digits appear in the clip?", str(count), "open"),
        "order": order(scene, number // 5 % 2 == 0),
        "text": word(number % 10),
    }


def build(docs: int, seed: int) -> dict[str, tuple[Scene, np.ndarray, dict[str, Question]]]:
    """Return scene, frames and questions of each clip, by its name."""
    bank = SpriteBank(load_scans().test, STYLE, 2, seed)
    clips = {}
    for kind, draw, golds in (("boxed", boxed, range(4)), ("parade", parade, range(2, 7))):
        rng = np.random.default_rng([seed, len(kind)])
        for number in range(docs):
            scene = draw(golds[number % len(golds)], bank, rng)
            clips[f"{kind}_{number:02d}"] = scene, render(scene, rng), questions(kind, scene, number)
    return clips


def row(name: str, family: str, number: int, scene: Scene, question: Question) -> dict[str, object]:
    """Return the line of a question."""
    return {
        "id": f"mosaic_video_{family}_{number:02d}",
        "video": f"{name}.mp4",
        "question": question.text,
        "answer": question.answer,
        "format": question.form,
        "category": family,
        "group": name,
        "digits": [
            {"value": e.value, "x": e.x, "y": e.y, "start": e.start, "stop": e.stop}
            for e in scene.events
            if e.value is not None
        ],
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--docs", type=int, default=DOCS, help=f"questions of each family (default {DOCS})")
    parser.add_argument(
        "--seed", type=int, default=SEED, help=f"another seed draws other clips and questions (default {SEED})"
    )
    options = parser.parse_args()
    for name in ("clips", "data"):
        shutil.rmtree(options.out / name, ignore_errors=True)
        (options.out / name).mkdir(parents=True)
    lines: dict[str, list[str]] = {}
    for name, (scene, frames, asked) in build(options.docs, options.seed).items():
        encode(frames, options.out / "clips" / f"{name}.mp4")
        for family, question in asked.items():
            rows = lines.setdefault(family, [])
            rows.append(json.dumps(row(name, family, len(rows), scene, question)))
    for family, rows in lines.items():
        (options.out / "data" / f"mosaic_video_{family}.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    scans = load_scans()
    kept = scans.images[scans.train].astype(np.uint8), scans.labels[scans.train].astype(np.uint8)
    np.savez_compressed(options.out / "scans.npz", images=kept[0], labels=kept[1])
    size = sum(path.stat().st_size for path in options.out.rglob("*") if path.is_file())
    print(f"{sum(map(len, lines.values()))} questions, {2 * options.docs} clips, {size / 2**20:.1f} MB")


if __name__ == "__main__":
    main()
