"""Names and texts from elsewhere: what acts, hides or must not be published does not get out, and ordinary texts come out as they are."""

import csv
import io
import re
import sys
import time
import unicodedata
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch import text
from lmms_patch.app.commands.common import say, tell, telling
from lmms_patch.present.sheets import Column, Sheet
from tests.sizes import size

# --- characters -----------------------------------------------------------------------------------

ACTS = [
    *(chr(code) for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n"),
    *map(chr, (0x200E, 0x200F, 0x061C, *range(0x202A, 0x202F), *range(0x2066, 0x206A))),
    *(
        "\u200b",
        "\u2060",
        "\ufeff",
        "\u00ad",
        "\u3164",
        "\u2028",
        "\u2029",
        "\ud800",
        "\udfff",
        "\ue000",
        "\ufffe",
        "\uffff",
    ),
    *("\U000e0001", "\U000e0041", "\U000e007f", "\U000f0000", "\U0010ffff", "\U0001ffff"),
]


@pytest.mark.parametrize("one", ACTS, ids=lambda one: f"U+{ord(one):04X}")
def test_what_acts_or_hides_does_not_get_out(one):
    for shown in (
        text.block(f"a{one}b"),
        text.line(f"a{one}b"),
        text.clean(f"a{one}b"),
        text.printed(f"a{one}b"),
        text.said(f"a{one}b"),
    ):
        assert one not in shown
        assert shown[0] == "a"
        assert shown[-1] == "b"
        assert len(shown) == 3


@pytest.mark.parametrize(
    "ordinary",
    [
        "Qwen/Qwen2.5-VL-7B-Instruct", "gqa_rci3, flexible-extract", "naïve café", "größer", "模型 7B", "модель", "مدل فارسی", "मॉडल", "דגם",
        "می\u200cخواهم", "क\u094d\u200dष", "👩\u200d💻", "👨🏽\u200d🦱 🏳️\u200d🌈", "é", "ệ", "n\u0303", "กำลัง", "1 − MPP / FIP", "a\u00a0b".replace("\u00a0", " "),
    ],
)  # fmt: skip
def test_names_in_any_script_come_out_as_they_are(ordinary):
    """Joiners stay where a script or an emoji needs them: between two of its characters."""
    assert text.block(ordinary) == text.line(ordinary) == text.clean(ordinary) == text.printed(ordinary) == ordinary


@pytest.mark.parametrize("spoof", ["gpt\u200d4", "gpt\u200c-4", "\u200dgpt", "gpt\u200d", "a\u200d\u200db", "é\u200dx"])
def test_joiners_that_only_make_equal_names_differ_are_seen(spoof):
    assert "\ufffd" in text.line(spoof)


def test_accents_do_not_run_over_other_lines():
    shown = text.line("Z" + "\u0301" * 500 + "x")
    assert len(shown) < 15
    assert shown[0] == "Z"
    assert shown[-1] == "x"


@given(st.text())
def test_lines_are_one_line_and_cleaning_twice_changes_nothing(given):
    for clean in (text.line, text.clean, text.said):
        shown = clean(given)
        assert len(shown.splitlines()) <= 1
        shown.encode("utf-8")
        assert clean(shown) == shown
        assert all(unicodedata.category(c) not in ("Cc", "Cs", "Co", "Zl", "Zp") for c in shown)
    assert text.block(text.block(given)) == text.block(given)
    assert len(f"{text.block(given)}.".splitlines()) == text.block(given).count("\n") + 1


def test_a_text_of_ten_megabytes_is_one_bearable_line_at_once():
    began = time.process_time()
    assert len(text.said("a\x1b[2J " * 1_500_000)) <= text.SENTENCE
    assert len(text.clean("x" * 10_000_000)) == text.LONGEST
    assert time.process_time() - began < 0.5
    shown = text.line("start " + "y" * 9_000 + " allowed: a, b", 100)
    assert shown.startswith("start ")
    assert shown.endswith("allowed: a, b")
    assert len(shown) <= 100


# --- secrets --------------------------------------------------------------------------------------

SECRETS = [
    "api_key", "API_KEY", "apikey", "apiKey", "openai_key", "OPENAI_API_KEY", "access_key", "aws_secret_access_key", "secret", "client_secret",
    "clientsecret", "token", "hf_token", "HF_TOKEN", "auth_token", "pass", "db_pass", "password", "passwd", "pwd", "user_pwd", "bearer", "auth",
    "authorization", "credential", "credentials", "cookie", "sas", "sas_token", "sig", "signature", "x-api-key", "x_amz_signature", "private_key",
    "key", "azure_subscription_key", "AccountKey", "dsn", "connection_string", "judge_api_key", "server.api_key", "anthropic-api-key", "use_auth_token",
]  # fmt: skip


@pytest.mark.parametrize("key", SECRETS)
@pytest.mark.parametrize(
    "value", ["S3cr3t", "two words", "with,comma", "with=equals==", "a&b", "p@ss:w/rd", "Bearer abc.def"]
)
def test_values_of_secret_keys_do_not_get_out(key, value):
    shown = text.arguments(f"model=org/m,{key}={value},n=2")
    assert shown == f"model=org/m,{key}=...,n=2"
    assert text.arguments(f"{key}={value}") == f"{key}=..."


ORDINARY = [
    "pretrained=Qwen/Qwen2.5-VL-7B-Instruct", "max_pixels=1003520", "min_pixels=3136", "tokenizer=org/tok", "tokenizer_checkpoint=a/b", "pass_k=5",
    "pass_at_k=1", "keyframes=8", "key_frames=4", "token_merging=2", "token_merge_ratio=0.5", "max_new_tokens=512", "num_image_tokens=576",
    "token_strategy=mean", "image_token=<image>", "eos_token_id=151645", "pad_token=<|pad|>", "faster_token_stride=2", "video_key=video",
    "option_key=choices", "pass_video_url=True", "use_auth_token=True", "token=None", "api_key=", "author=me", "tokens_per_frame=64", "compass=1",
    "bypass=2", "signal=3", "assignment=x", "sigma=0.5", "design_signature_columns=a", "secretary=anna", "monkey=3", "keyboard=us", "hockey=1",
    "attn_implementation=flash_attention_2", "device_map=auto", "base_url=https://host.example:8000/v1", "max_token=1024", "authority=x", "passage=3",
    "revision=0123456789abcdef0123456789abcdef01234567", "model_version=gpt-4o-2024-08-06", "chat_template=./a.jinja", "dtype=bfloat16",
    "multi_pass=2", "single_pass=True", "image_key=image", "public_key=none", "sk_layers=3", "model=sk-resnet-large-patch", "model=secret:7b",
    "fps=2,max_frames_num=32,use_flash_attention_2=False", 'chat_template_kwargs={"enable_thinking": false}',
]  # fmt: skip


@pytest.mark.parametrize("ordinary", ORDINARY)
def test_ordinary_arguments_stay(ordinary):
    """Masked, two models that differ in them would be one."""
    assert text.arguments(ordinary) == ordinary
    assert text.arguments(f"pretrained=a/b,{ordinary},batch=1") == f"pretrained=a/b,{ordinary},batch=1"


def test_no_argument_of_an_adapter_of_the_harness_is_taken_for_a_secret_but_keys():
    """The arguments of every adapter of lmms-eval 0.7.3 whose names look like it."""
    names = [
        "api_url", "base_url", "eos_token_id", "faster_token_stride", "image_token", "load_detokenizer",
        "max_new_tokens", "max_soft_tokens", "max_think_token_n", "max_tokens", "miv_token_len", "nim_base_url",
        "pad_token_id", "pass_video_url", "reasoner_server_url", "reduce_generation_overhead", "server_url",
        "si_token_len", "specified_eot_token_id", "stage1_max_new_tokens", "stage2_max_new_tokens",
        "token_merge_ratio", "token_strategy", "tokenize_fn", "tokenizer", "tokenizer_checkpoint",
        "tokenizer_config_path", "video_key", "vqtoken_max_clusters", "vqtoken_min_clusters",
        "vqtoken_selection_method",
    ]  # fmt: skip
    for name in names:
        for value in ("512", "mean", "org/name", "True", "0.25", "<image>"):
            assert text.arguments(f"{name}={value}") == f"{name}={value}"
    assert text.arguments("api_key=abc") == "api_key=..."


LOOKS = {
    "model=gpt,x=sk-proj-abcDEF1234567890abcdef": "model=gpt,x=...",
    "note=hf_abcdefghijklmnopqrstuvwxyz": "note=...",
    "note=ghp_abcdefghijklmnopqrstuvwxyz0123": "note=...",
    "note=AKIAIOSFODNN7EXAMPLE": "note=...",
    "note=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-_": "note=...",
    "base_url=https://me:p@ss@host.example/v1,n=1": "base_url=https://...@host.example/v1,n=1",
    "base_url=postgres://user:pw@db:5432/x": "base_url=postgres://...@db:5432/x",
    "base_url=https://h/v1?key=abc&page=2,n=1": "base_url=https://h/v1?key=...&page=2,n=1",
    "base_url=https://h/v1?page=2&token=abc#x": "base_url=https://h/v1?page=2&token=...",
    "base_url=https://h/c?sv=1&sig=a%2Bb%3D&se=2": "base_url=https://h/c?sv=1&sig=...&se=2",
    "default_headers={'Authorization': 'Bearer abc, d', 'x': '1'}": "default_headers={'Authorization': '...', 'x': '1'}",
    '{"model": "m", "api_key": "a\\"b", "n": 2}': '{"model": "m", "api_key": "...", "n": 2}',
    "extra={'headers': {'x-api-key': 'k1'}, 'n': 2}": "extra={'headers': {'x-api-key': '...'}, 'n': 2}",
    "conn=x,AccountName=me;AccountKey=abc==;Suffix=core": "conn=x,AccountName=me;AccountKey=...;Suffix=core",
}


@pytest.mark.parametrize(("given", "shown"), LOOKS.items())
def test_secrets_by_their_looks_and_in_addresses(given, shown):
    assert text.arguments(given) == shown
    assert text.arguments(shown) == shown


def test_a_message_does_not_tell_keys():
    assert text.said("cannot reach https://me:pw@h/v1?api_key=abc: sk-abcdefgh1234567890 is wrong") == (
        "cannot reach https://...@h/v1?api_key=... ... is wrong"
    )


words = st.text("abcdefghijklmnop_0123", min_size=1, max_size=8)


@given(st.lists(st.tuples(words, words), max_size=5), words, words)
def test_runs_with_other_keys_are_one_model_and_other_arguments_tell_models_apart(pairs, one, other):
    ordinary = ",".join(f"arg_{key}_n={value}" for key, value in pairs)
    assert text.arguments(f"{ordinary},api_key=a{one}") == text.arguments(f"{ordinary},api_key=a{other}")
    first, second = (text.arguments(f"{ordinary},api_key=x,arg_z={value}") for value in (one, other))
    assert (first == second) == (one == other)


def test_runs_are_known_by_what_is_not_secret(tmp_path):
    """Two runs that differ in the key alone are one model, those with another size are two; no label has a key."""
    from lmms_patch.runs import run
    from tests.making.boards import document, write

    made = [document("m", date=f"2026010{day}_000000") for day in (1, 2, 3)]
    for one, key, pixels in zip(made, ("k1", "k2", "k1"), (1, 1, 2), strict=True):
        one["config"]["model_args"] = f"openai_key={key}SECRET,max_pixels={pixels}"
    found = run.find([path.parent for path in write(tmp_path, *made)])
    assert len(found) == 3
    named = run.labels(found)
    assert sorted(named.values()) == ["m (openai_key=...,max_pixels=1)", "m (openai_key=...,max_pixels=2)"]


# --- forms ----------------------------------------------------------------------------------------

FORMULAS = ["=1+1", "+1+1", "-1+1", "@SUM(1)", "\t=1", " =1", "\r=1", "＝1+1", "-cmd|' /C calc'!A0", "\n=1"]


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_cell_and_no_head_of_a_csv_file_is_a_formula(formula):
    sheet = Sheet("t", "t", (Column("name", "name"), Column(formula, "x")), ({"name": formula, formula: "y"},))
    rows = list(csv.reader(io.StringIO(sheet.to_csv(), newline="")))
    assert len(rows) == 2
    for cell in (rows[0][1], rows[1][0]):
        assert cell[0] == "'"
        assert text.from_csv_cell(cell) == text.block(formula)
    for number in ("-0.5", "-1e-05", "-", "="):
        assert text.csv_cell(number) == number


COMMANDS = ["::error::x", "  ::set-output name=a::b", "##[group]x", "a ##[error]b", "##vso[task.setvariable]x"]
BREAKS = ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x85", "\u2028", "\u2029", "\x1e"]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("line_end", BREAKS, ids=ascii)
def test_a_build_server_sees_no_command_in_our_output(command, line_end, capsys):
    """GitHub acts on lines that begin with :: after white space, and on ##[ anywhere."""
    say(f"task{line_end}{command}")
    tell(f"task{line_end}{command}")
    for shown in capsys.readouterr():
        for one in shown.splitlines():
            assert not one.strip().startswith("::")
            assert not re.search(r"##(vso)?\[", one)


def test_a_stream_without_place_for_a_character_gets_an_escape(monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", out)
    say("größer 🦙")
    with telling():
        tell("größer")
    out.flush()
    assert out.buffer.getvalue().split() == [b"gr\\xf6\\xdfer", b"\\U0001f999", b"gr\\xf6\\xdfer"]


@given(st.text())
def test_any_line_can_stand_in_xml(given):
    element = ElementTree.Element("a", {"name": text.line(given)})
    element.text = text.line(given)
    found = ElementTree.fromstring(ElementTree.tostring(element))
    assert (found.get("name"), found.text or "") == (text.line(given), text.line(given))


MARKUP = [
    "**a**", "_a_", "__a__", "`a`", "~~a~~", "[a](http://b)", "![a](b)", "[a][b]", "[a]: b", "[^1]", "<b>", "<!-- x", "&lt;b&gt;", "&#60;", "http://b",
    "www.b.org", "# a", "- a", "+ a", "* a", "1. a", "1) a", "> a", ">a", "---", "===", "***", "~~~", "```", "a|b", "a\\|b", "\\", "| a |", "$a$", "{{ a }}",
    "a\\", "\\*a*",
]  # fmt: skip


@pytest.mark.parametrize("markup", MARKUP)
def test_markdown_shows_names_as_they_are(markup):
    """Read back by an independent parser with tables, links and strikethrough: plain text, whatever place it stands in."""
    md = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable(["table", "strikethrough"])
    for place, wanted in (("{}", "paragraph"), ("# {}", "heading"), ("| {} | x |\n| --- | --- |\n| {} | y |", "table")):
        tokens = md.parse(place.format(*[text.markdown(markup)] * 2))
        assert tokens[0].type == f"{wanted}_open"
        inline = [token for token in tokens if token.type == "inline"]
        assert {child.type for token in inline for child in token.children} <= {"text", "text_special"}
        assert "".join(child.content for child in inline[0].children).replace("\u200b", "") == markup
        assert len(inline) == {"table": 4}.get(wanted, 1)


def test_markdown_mentions_nobody():
    assert "@me" not in text.markdown("@me and @you/team")
    assert "#12" not in text.markdown("see #12")


@pytest.mark.parametrize(
    "ordinary",
    ["Qwen/Qwen2.5-VL-7B", "gqa_rci3", "-0.123 [-0.200, -0.050]", "RCI [95 %]", "3×3 cells", "a & b", "R&D", "1.5"],
)
def test_markdown_leaves_ordinary_names_alone(ordinary):
    assert text.markdown(ordinary) == ordinary


def test_latex_takes_no_name_for_an_option_of_the_line_before():
    """A row end looks ahead for * and [, past the line end."""
    body = (
        Sheet("t", "t", (Column("a", "a"),), ({"a": "*x"}, {"a": "[2cm]"}, {"a": "a\nb%\\"}))
        .to_latex()
        .split("\\midrule\n")[1]
    )
    assert body.split("\n")[:3] == ["{*}x \\\\", "{[}2cm] \\\\", "a b\\%\\textbackslash{} \\\\"]


def test_log_lines_are_one_line_and_no_template(capsys):
    """Names with braces and colour tags are text to loguru; line ends and escapes do not reach the log."""
    from loguru import logger as shared

    lines = []
    sink = shared.add(lines.append, format="{message}", colorize=True)
    try:
        text.log().warning("{x} <red>a</red> {0}\n::error::b\x1b[31m https://me:pw@h")
        text.log().warning("{}: {}", "{y}", "a\rb")
    finally:
        shared.remove(sink)
    assert lines == ["{x} <red>a</red> {0} ::error::b\ufffd[31m https://...@h\n", "{y}: a b\n"]


# --- cost -----------------------------------------------------------------------------------------

HARD = ["a", "\u0301", "\u200d", "::", "\n", " ", "\t", "##[", "key=", "token: ", "foo_key: ", "password='", "x,", "eyJ-", "sk-", "hf_", "://a@", "Bearer ",
        "-----BEGIN PRIVATE KEY-----", "[a](", "\\", "_", "@", "&", "?key=", "a=b&", "'k': "]  # fmt: skip


@pytest.mark.parametrize("unit", HARD, ids=ascii)
def test_time_grows_with_length_and_no_faster(unit):
    """Ten times the text takes at most twenty-five times the time, for every cleaner on what is hardest for it."""

    def seconds(length):
        given = (unit * (length // len(unit) + 1))[:length]
        best = 1e9
        for _ in range(2):
            began = time.process_time()
            for clean in (
                text.block,
                text.line,
                text.masked,
                text.arguments,
                text.markdown,
                text.latex,
                text.csv_cell,
                text.printed,
            ):
                clean(given)
            best = min(best, time.process_time() - began)
        return best

    short = size(800, 4_000)
    assert seconds(10 * short) <= 25 * seconds(short) + size(0.01, 0.02)
