"""Every text that the installed host writes where a call gave no answer, found in its source.

A new one in a new version fails here.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
from pathlib import Path

import pytest
from lmms_eval.models import AVAILABLE_CHAT_TEMPLATE_MODELS, AVAILABLE_SIMPLE_MODELS

from lmms_patch.harness import compat

MODELS = Path(importlib.util.find_spec("lmms_eval").origin).parent / "models"
OF_OTHERS = {
    "chat/_chat_base": ("baichuan_omni", "minicpm_o", "omnivinci", "qwen2_5_omni", "qwen3_omni"),
    "simple/diffusers_wm_base": ("ltx_video", "wan2_1_t2i", "wan2_1_t2v", "wan2_2", "wan2_2_t2v"),
}
"""Files that hold what several adapters share."""
NO_ANSWERS = {
    "chat/fastvideo '~: ~'": "goes to the parent process, which raises",
    "chat/fastvideo 'init_error'": "goes to the parent process, which raises",
    "chat/fastvideo 'error'": "goes to the parent process, which raises",
    "simple/aero 'generate_until'": "a key of the cache",
    "simple/ola 'generate_until'": "a key of the cache",
    "simple/qwen2_5_omni 'generate_until'": "a key of the cache",
    "simple/qwen3_omni 'generate_until'": "a key of the cache",
    "simple/video_salmonn_2 'generate_until'": "a key of the cache",
    "simple/aria ''": "only where a video cannot be read",
    "simple/llava_hf ''": "only where a video cannot be read",
    "simple/llava ''": "never reached: the exception is raised again",
    "simple/ross ''": "never reached: the exception is raised again",
    "simple/slime ''": "never reached: the exception is raised again",
    "simple/tinyllava ''": "never reached: the exception is raised again",
    "simple/cogvlm2 ''": "not used: the answer before is given once more, which nothing tells from an answer",
    "simple/minicpm_v ''": "not used: the answer before is given once more, which nothing tells from an answer",
    "simple/minimonkey ''": "not used: the answer before is given once more, which nothing tells from an answer",
    "simple/idefics2 'eager'": "a way of attention",
    "simple/illume_plus 'eager'": "a way of attention",
    "simple/illume_plus 'sdpa'": "a way of attention",
    "simple/mantis 'eager'": "a way of attention",
}
"""Texts in ``except`` blocks that never become an answer to a question about an image, and why."""

FILLED = {"chat/async_openai 'Error: ~'": 'Error: can only concatenate str (not "NoneType") to str'}
"""Texts that only what is filled in makes plain: here, what Python says where a server sends no text."""


def texts(node):
    """The texts that an expression gives on: of it, or of a tuple, list or call's arguments.

    "~" where something is filled in.
    """
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.JoinedStr):
        return ["".join(part.value if isinstance(part, ast.Constant) else "~" for part in node.values)]
    if isinstance(node, (ast.Tuple, ast.List)):
        return [text for inner in node.elts for text in texts(inner)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "GenerationResult":
        return [text for inner in (*node.args, *(word.value for word in node.keywords)) for text in texts(inner)]
    return []


def given_on(node):
    """The texts that a statement returns, assigns or appends."""
    if isinstance(node, (ast.Return, ast.Assign, ast.AugAssign)) and node.value is not None:
        return texts(node.value)
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("append", "extend", "put", "add_partial")
    ):
        return [text for argument in node.args for text in texts(argument)]
    return []


@functools.cache
def written():
    """``file 'text'`` of each text in an ``except`` block of an adapter, and of each bracketed word in capitals anywhere in one."""
    found = set()
    for kind in ("simple", "chat"):
        for path in sorted((MODELS / kind).glob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            blocks = [
                node for block in ast.walk(tree) if isinstance(block, ast.ExceptHandler) for node in ast.walk(block)
            ]
            said = [text for node in blocks for text in given_on(node)]
            said += [
                text for node in ast.walk(tree) for text in given_on(node) if re.match(r"\[[A-Z_]{4,}[\]: ]", text)
            ]
            found |= {f"{kind}/{path.stem} {text!r}" for text in said}
    return frozenset(found)


def adapters(name):
    kind_and_stem = name.partition(" ")[0]
    return OF_OTHERS.get(kind_and_stem, (kind_and_stem.partition("/")[2],))


def test_every_text_that_stands_for_an_answer_is_known():
    known = NO_ANSWERS.keys()
    said = {name: FILLED.get(name) or ast.literal_eval(name.partition(" ")[2]) for name in written() - known}
    unknown = {
        name for name, text in said.items() if not all(compat.failure(text, adapter) for adapter in adapters(name))
    }
    assert not unknown, (
        f"new texts of the host: recognise them in compat, or say here why they are no answers: {sorted(unknown)}"
    )
    assert known <= written(), f"the host no longer writes {sorted(known - written())}"


def test_every_text_that_is_recognised_is_the_hosts():
    everything = "\n".join(path.read_text(encoding="utf-8") for path in MODELS.rglob("*.py"))
    assert all(beginning in everything for beginning in compat.BEGINNINGS)
    assert set(compat.WRITTEN_BY) <= {*AVAILABLE_SIMPLE_MODELS, *AVAILABLE_CHAT_TEMPLATE_MODELS}
    blank = {a for name in written() - NO_ANSWERS.keys() if name.endswith(" ''") for a in adapters(name)}
    assert blank == {name for name, pattern in compat.WRITTEN_BY.items() if not pattern.pattern}


@pytest.mark.parametrize(
    ("text", "adapter", "failed"),
    [
        ("[LMMS_EVAL_REQUEST_FAILED after 5 retries] x", "openai", True),
        (" \n[LMMS_EVAL_BUDGET_EXCEEDED]", "", True),
        ("It says [LMMS_EVAL_BUDGET_EXCEEDED].", "openai", False),
        ("[LMMS_EVAL", "openai", False),
        ("", "claude", True),
        ("\n", "claude", True),
        ("", "openai", False),
        ("[ERROR] Unknown", "magi1_wm", True),
        ("[ERROR] Unknown", "openai", False),
        ('Error: can only concatenate str (not "NoneType") to str', "async_openai", True),
        ('Error: can only concatenate str (not "NoneType") to str', "openai", False),
        ("None", "", False),
        (compat.NoText("None"), "", True),
        (None, "", True),
        ((1.0, True), "", False),
        (["[LMMS_EVAL_BUDGET_EXCEEDED]"], "", False),
    ],
)
def test_what_is_a_failure(text, adapter, failed):
    assert bool(compat.failure(text, adapter)) is failed


def test_what_python_says_where_a_server_sends_no_text():
    with pytest.raises(TypeError) as caught:
        _ = "" + None
    assert FILLED["chat/async_openai 'Error: ~'"] == f"Error: {caught.value}"


def test_a_failure_is_told_in_one_short_line():
    said = compat.failure("[LMMS_EVAL_REQUEST_FAILED after 5 retries] " + "a\nb " * 500)
    assert "\n" not in said
    assert len(said) == compat.LONGEST_FAILURE


@pytest.mark.parametrize(
    ("model", "adapter"),
    [("async_openai_compatible", "async_openai"), ("claude", "claude"), ("mine", "mine"), (None, "")],
)
def test_the_adapter_of_a_name_that_a_user_types(model, adapter):
    assert compat.adapter_of(model) == adapter
