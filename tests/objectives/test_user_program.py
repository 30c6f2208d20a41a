"""A program as the objective: what it is called with, and what counts as its value."""

from __future__ import annotations

import resource
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mctsvs import InputError
from mctsvs.objectives import user_program
from mctsvs.objectives.space_file import SpaceFile, parse_space
from mctsvs.objectives.user_program import UserProgram, read_output
from mctsvs.utils.validation import EvaluationFailed


def space(text: str) -> SpaceFile:
    return parse_space(tomllib.loads(text))


AB = space("a = [0, 1]\nb = { choices = ['x y', '; echo 7', '$(echo 8)', true] }")
GROUP = space("n = { type = 'integer', low = 1, high = 3 }\n[x]\ncount = 3\nlow = 0\nhigh = 1")


def python(code: str, file: SpaceFile = AB, rest: str = "{a} {b}", timeout: float | None = 60) -> UserProgram:
    return UserProgram.parse(f"{sys.executable} -c '{code}' {rest}", file, timeout)


def test_names_are_replaced_inside_each_piece() -> None:
    made = UserProgram.parse("echo --a {a} --a={a:.2f} '{b} {{b}}' \"two words\"", AB)
    assert made.arguments(np.array([0.5, 0])) == [
        "echo", "--a", "0.5", "--a=0.50", "x y {b}", "two words",
    ]  # fmt: skip
    assert made.arguments(np.array([0.5, 3]))[4] == "true {b}"


def test_a_group_is_many_arguments_or_one_with_commas() -> None:
    made = UserProgram.parse("echo {n} {x} --x={x:.1f} {x2}", GROUP)
    assert made.arguments(np.array([2, 0.25, 0.5, 1.0])) == [
        "echo", "2", "0.25", "0.5", "1.0", "--x=0.2,0.5,1.0", "1.0",
    ]  # fmt: skip
    assert UserProgram.parse("echo {n} {x:.1f}", GROUP).arguments(np.array([2, 0, 0, 1]))[2:] == ["0.0", "0.0", "1.0"]


def test_what_does_not_exist_is_left_out() -> None:
    file = space("""
on = { type = "boolean" }
seed = { value = 3 }
a = { low = 0, high = 1, when = { on = true } }
x = { count = 2, low = 0, high = 1, when = { on = true } }
n = { values = [16, 32] }
""")
    made = UserProgram.parse("echo --on {on} --a {a} -x {x} --both={a},{n} --n {n} --seed={seed}", file)
    assert made.arguments(np.array([1, 0.5, 0.25, 0.75, 32])) == [
        "echo", "--on", "true", "--a", "0.5", "-x", "0.25", "0.75", "--both=0.5,32", "--n", "32", "--seed=3",
    ]  # fmt: skip
    assert made.arguments(np.array([0, 0.5, 0.25, 0.75, 16])) == ["echo", "--on", "false", "--n", "16", "--seed=3"]


@pytest.mark.parametrize("choice", [0, 1, 2])
def test_no_value_becomes_a_command_or_a_further_argument(choice: int) -> None:
    code = "import sys; print(sys.argv[2:]); print(len(sys.argv), sys.argv[1])"
    assert python(code)(np.array([0.125, choice])) == 0.125
    count = python("import sys; print(len(sys.argv))")
    assert count(np.array([0.125, choice])) == 3


@settings(max_examples=30, deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20))
def test_any_choice_is_one_argument(text: str) -> None:
    file = parse_space({"b": {"choices": [text]}})
    assert UserProgram.parse("echo 'v={b}' {b}", file).arguments(np.array([0.0])) == ["echo", f"v={text}", text]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ('import sys; print(3); sys.exit("went wrong")', "exit status 1: went wrong"),
        ("import os; print(3); os.kill(os.getpid(), 9)", "ended by SIGKILL"),
        ('print("no value here")', "printed no number: no value here"),
        ('print("0.25,1")', "printed no number that stands alone: 0.25,1"),
        ("pass", "printed no number"),
        ('print(1); print("nan")', "printed nan as its last number"),
        ('print(1); print(float("-inf"))', "printed -inf as its last number"),
        ("1 / 0", "exit status 1: ZeroDivisionError: division by zero"),
    ],
)
def test_failed_evaluations_say_why(code: str, message: str) -> None:
    with pytest.raises(EvaluationFailed) as failure:
        python(code)(np.array([0.5, 0]))
    assert str(failure.value) == message


def test_a_time_out_ends_the_program_and_what_it_started(tmp_path: Path) -> None:
    # The child would write the file half a minute later; the pipe it holds open must not keep us waiting either.
    code = 'import subprocess, sys; subprocess.run([sys.executable, "-c", "import time; time.sleep(30)"])'
    with pytest.raises(EvaluationFailed, match=r"stopped after 0\.5 seconds"):
        python(code, timeout=0.5)(np.array([0.5, 0]))


def test_output_that_is_no_text_does_no_harm() -> None:
    code = 'import sys; sys.stdout.buffer.write(bytes([255, 254, 10]) + b"2.5")'
    assert python(code)(np.array([0.5, 0])) == 2.5


ALONE = [
    "0,5",
    "1,234.5",
    "1'234.5",
    "1'234'567",
    "2*3",
    "−3",
    "12:30:01",
    "12:30pm",
    "1/3",
    "10^-3",
    "100%",
    "1–2",
    "3±1",
    "$5",
    "2024-01-05T12:30:01",
]


def last_number(output: str) -> float:
    value, _ = read_output(output)
    assert value is not None
    return float(value)


@pytest.mark.parametrize(
    ("output", "value"),
    [
        ("3", 3.0),
        ("loss: 0.31\n", 0.31),
        ("loss=0.31", 0.31),
        ("1\n2\n-3.5e-2\n", -0.035),
        ("(4, 5.)", 5.0),
        ('{"value": .5}', 0.5),
        ("loss 0.25 after 12s", 0.25),
        ("0.25 with version 1.2.3", 0.25),
        ("0.25 on 2024-01-05", 0.25),
        ("0.25 epoch10 x3", 0.25),
        ("nan 0.25", 0.25),
        ("+7", 7.0),
        ("value 7.", 7.0),
        ("it is 0.25!", 0.25),
        ('{"loss":0.31,"n":"x"}', 0.31),
        ("f1:0.25", 0.25),
        ("run1,0.25", 0.25),
        ("0.5;0.25", 0.25),
        ("a1 '0.25'", 0.25),
        ("1 **0.25**", 0.25),
        ("\ufeff0.25", 0.25),
        *(("0.25 then " + other, 0.25) for other in ALONE),
    ],
)
def test_the_last_number_counts(output: str, value: float) -> None:
    assert last_number(output) == value


def test_long_rows_of_digits_take_no_time() -> None:
    for output in (
        "1" * 1_000_000 + "x 4",
        "1," * 300_000 + "x 4",
        "5" + "!" * 1_000_000 + "x 4",
        "a 1 " * 100_000 + "4",
    ):
        assert last_number(output) == 4.0  # all ways to split them would take days
    with pytest.raises(EvaluationFailed, match=r"^printed 1{200} as its last number$"):
        python('print("1" * 5000)')(np.array([0.5, 0]))


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers())
def test_numbers_survive_printing(value: float, before: int) -> None:
    assert last_number(f"step {before}\nvalue {value}\n") == value


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("", "the command is empty"),
        ("echo '{a} {b}", "cannot be split: no closing quotation"),
        ("echo {a}", "never uses 'b': write {b}"),
        ("echo {a} {b} {c}", "{c} in the command is no variable: the space has 'a' and 'b'"),
        ("echo {a.real} {b}", "{a.real} in the command is no variable"),
        ("echo {} {a} {b}", "{} in the command is no variable"),
        ("echo {a {b}", "unpaired braces"),
        ("echo {a!r} {b}", "has !r"),
        ("echo {a:q} {b}", "cannot be written as {:q}"),
        ("{b} {a}", "must not depend on a variable"),
        ("./not-there {a} {b}", "cannot run './not-there': the program is not there"),
    ],
)
def test_a_bad_command_is_one_sentence(template: str, words: str) -> None:
    with pytest.raises(InputError) as error:
        UserProgram.parse(template, AB)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("choices", "template", "words"),
    [
        (["a", "b\0c"], "echo {k}", "has a null character"),
        (["a", 2], "echo {k:s}", "2 cannot be written as {:s}"),
    ],
)
def test_every_choice_is_tried_before_the_run(choices: list[object], template: str, words: str) -> None:
    file = parse_space({"k": {"choices": choices}})
    with pytest.raises(InputError) as error:
        UserProgram.parse(template, file)
    assert words in str(error.value)


def test_the_program_must_be_executable(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("text")
    with pytest.raises(InputError, match="is not executable"):
        UserProgram.parse(f"{tmp_path / 'notes'} {{a}} {{b}}", AB)


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan"), float("inf")])
def test_a_bad_time_out(timeout: float) -> None:
    with pytest.raises(InputError, match="larger than 0"):
        UserProgram.parse("echo {a} {b}", AB, timeout)


def test_many_unused_variables_are_cut_short() -> None:
    with pytest.raises(InputError) as error:
        UserProgram.parse("echo 1", space("[x]\ncount = 300\nlow = 0\nhigh = 1"))
    assert "never uses 'x0', 'x1', 'x2', 'x3', 'x4' and 295 others: write {x0}" in str(error.value)


@pytest.mark.parametrize(
    ("template", "syntax"),
    [
        ("echo {a} {b} | tail -1", "|"),
        ("echo {a} {b} |tail -1", "|"),
        ("echo {a} {b} > out.txt", ">"),
        ("echo {a} {b} 2>&1", ">"),
        ("echo {a} {b} && echo 3", "&&"),
        ("echo {a} {b} || echo 3", "||"),
        ("echo {a} {b}; echo 3", ";"),
        ("echo {a} {b} &", "&"),
        ("echo {a} {b} < in.txt", "<"),
        ("echo {a} {b} $(date)", "$("),
        ('echo {a} {b} "$(date)"', "$("),
        ("echo {a} {b} `date`", "a backtick"),
    ],
)
def test_shell_syntax_is_refused_with_what_would_be_right(template: str, syntax: str) -> None:
    with pytest.raises(InputError) as error:
        UserProgram.parse(template, AB)
    assert str(error.value).startswith(f"{syntax} in the command is for a shell")
    assert "sh -c" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("template", "arguments"),
    [
        ("echo {a:>8.3f} {b}", ["   0.500", "x y"]),
        ("echo '| > && ; $(date) `date`' {a} {b}", ["| > && ; $(date) `date`", "0.5", "x y"]),
        ('echo "a;b|c" {a} {b}', ["a;b|c", "0.5", "x y"]),
        (r"echo \; \| {a} {b}", [";", "|", "0.5", "x y"]),
        ("""sh -c 'echo "$@" | tail -1' sh {a} {b}""", ["-c", 'echo "$@" | tail -1', "sh", "0.5", "x y"]),
        ("echo '\"' {a} {b} \"'\"", ['"', "0.5", "x y", "'"]),
    ],
)
def test_what_only_looks_like_it_is_not(template: str, arguments: list[str]) -> None:
    assert UserProgram.parse(template, AB).arguments(np.array([0.5, 0]))[1:] == arguments


def test_a_shell_of_the_users_gets_values_as_arguments() -> None:
    made = UserProgram.parse("""sh -c 'printf "%s\\n" "$@" | tail -1' sh {b} {a}""", AB)
    assert [made(np.array([0.25, choice])) for choice in range(4)] == [0.25] * 4


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")
def test_much_output_takes_neither_memory_nor_time(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        "block = b'12345 is not it\\n' * 4096\n"
        "for _ in range(3200):\n"
        "    sys.stdout.buffer.write(block)\n"
        "    sys.stderr.buffer.write(block[:4096])\n"
        "print('value 2.5 after')\n"
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    made = UserProgram.parse(f"{sys.executable} {program} {{a}} {{b}}", AB, 60)
    assert made(np.array([0.5, 0])) == 2.5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000, "kilobytes"


def test_a_number_that_is_cut_is_no_number() -> None:
    output = "12345678 " + "x" * (user_program.TAIL - 5)
    data = bytearray(output.encode())
    assert read_output(user_program._text_of(data)) == (None, {})
    assert last_number(user_program._text_of(bytearray(b"7" * 30 + b" 4 " + b"x" * (user_program.TAIL - 10)))) == 4.0


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")
def test_a_program_that_leaves_its_session_cannot_stretch_the_time_out() -> None:
    code = "import os, time; os.fork() or (os.setsid(), time.sleep(20)); time.sleep(20)"
    started = time.monotonic()
    with pytest.raises(EvaluationFailed, match=r"stopped after 0\.5 seconds"):
        python(code, timeout=0.5)(np.array([0.5, 0]))
    assert time.monotonic() - started < 10


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")
def test_a_program_that_ends_while_its_output_stays_open_is_stopped_in_time() -> None:
    code = "import os, time; print(3, flush=True); os.fork() or (os.setsid(), time.sleep(20))"
    started = time.monotonic()
    with pytest.raises(EvaluationFailed, match=r"stopped after 0\.5 seconds"):
        python(code, timeout=0.5)(np.array([0.5, 0]))
    assert time.monotonic() - started < 10


def test_constraints_are_the_last_numbers_after_their_names() -> None:
    output = "stress: 3\nstress = -0.25 MPa\nmass=1e3\nother stress2 7\nvalue 12.5\nmass nan\nbad stressed 9\n12.75\n"
    value, found = read_output(output, ["stress", "mass", "stress2", "never"])
    assert str(found) == "{'stress': -0.25, 'mass': nan, 'stress2': 7.0, 'never': nan}"
    assert value == "12.75"
    assert read_output('{"Cost":2,"stress":1} after 12.5', ["stress"], "cost") == ("2", {"stress": 1.0})
    assert read_output("no cost, 3", (), "cost") == (None, {})


def test_a_program_prints_its_constraints() -> None:
    def made(code: str) -> UserProgram:
        return UserProgram.parse(f"{sys.executable} -c '{code}' {{a}} {{b}}", AB, 60, ["g", "h"])

    x = np.array([0.5, 0])
    value, constraints = made('print(4.5); print("g -1"); print("h 0.5")')(x)
    assert (value, constraints) == (4.5, {"g": -1.0, "h": 0.5})
    value, constraints = made('print("g", 2)')(x)
    assert value is None
    assert str(constraints) == "{'g': 2.0, 'h': nan}"
    with pytest.raises(EvaluationFailed, match="printed no number"):
        made('print("nothing")')(x)
    with pytest.raises(InputError, match="needs a name"):
        UserProgram.parse("echo {a} {b}", AB, None, [" "])
