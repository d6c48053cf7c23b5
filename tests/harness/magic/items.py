"""A small MAGIC dataset on disk, for tests that load it as tasks."""

import numpy as np
from PIL import Image

WIDTH, HEIGHT = 200, 160


def picture(number):
    """Every pixel is another colour, and the image's own (numbers below 32)."""
    array = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    array[..., 0] = np.arange(HEIGHT)[:, None]
    array[..., 1] = np.arange(WIDTH)[None, :]
    array[..., 2] = 40 * number % 256
    return Image.fromarray(array)


def row(number, **changes):
    """An item with relevant boxes 1 and 3 of the file, adversarial 2 and 4; step 3 is wrong."""
    boxes = [[10, 10, 50, 50], [70, 10, 110, 50], [10, 90, 50, 130], [130, 90, 180, 130]]
    return {
        "id": f"q{number}",
        "image": f"{number}.png",
        "question": f"What is in picture {number}?",
        "question_type": "query",
        "answer": "red",
        "full_answer": "It is red.",
        "boxes": [
            {"box": box, "relevant": place % 2 == 0, "label": f"thing {place + 1}"} for place, box in enumerate(boxes)
        ],
        "steps": [
            {"text": "I look at the whole image.", "correct": True},
            {"text": "R1 shows a thing.", "correct": True},
            {"text": "R3 is green.", "correct": False, "correction": "R3 is red."},
            {"text": "So I compare R1 and R3.", "correct": True},
            {"text": "Both are clear.", "correct": True},
        ],
        "group": f"image {number}",
        **changes,
    }
