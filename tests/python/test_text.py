import dataclasses

import pytest

import graphs
from torchatlas import text
from torchatlas.graph import TensorSpec


@pytest.mark.parametrize(
    ("number", "wanted"),
    [
        (0, "0"),
        (42, "42"),
        (999, "999"),
        (1000, "1 k"),
        (590_592, "591 k"),
        (999_960, "1 M"),
        (124_439_808, "124 M"),
        (1.5e9, "1.5 G"),
        (7e13, "70 T"),
    ],
)
def test_counts_have_three_digits_and_a_unit(number: float, wanted: str) -> None:
    assert text.count_text(number) == wanted


@pytest.mark.parametrize(("shape", "wanted"), [((1, 3, 224), "1×3×224"), ((), "scalar"), (None, "?"), ((0,), "0")])
def test_shapes_are_written_as_people_do(shape: tuple[int, ...] | None, wanted: str) -> None:
    assert text.shape_text(TensorSpec(shape, "float32", "cpu", False, 0)) == wanted


def test_summary_lists_modules_as_a_tree_with_shapes_and_parameters() -> None:
    lines = text.summary(graphs.perceptron()).splitlines()
    assert lines[0] == "Net · 40 parameters · 2 module calls · 2 operations, 2 shown"
    assert lines[1].split() == ["input", "x", "1×4", "float32"]
    assert lines[2].split() == ["output", "output", "1×8", "float32"]
    assert lines[-1].split() == ["fc", "Linear", "1×8", "40"]
    assert lines[-1].startswith("  fc")


def test_equal_blocks_in_a_row_are_one_line() -> None:
    lines = text.summary(graphs.stack(12)).splitlines()
    assert [line.split() for line in lines if "h." in line] == [["h.0", "…", "h.11", "×12", "Block", "1×4"]]


def test_many_tensors_are_counted_instead_of_listed() -> None:
    graph = graphs.perceptron()
    outputs = tuple(dataclasses.replace(graph.nodes[3], id=3 + n, name=f"output[{n}]") for n in range(24))
    call = dataclasses.replace(graph.calls[0], outputs=graph.nodes[3].outputs * 24)
    many = dataclasses.replace(
        graph, nodes=(*graph.nodes[:3], *outputs), outputs=tuple(range(3, 27)), calls=(call, *graph.calls[1:])
    )
    lines = text.summary(many).splitlines()
    assert "  output  and 20 more" in lines
    assert "1×8, 1×8 and 22 more" in next(line for line in lines if line.startswith("Net  "))


def test_depth_limits_the_tree() -> None:
    assert "Linear" in text.summary(graphs.stack(2), depth=2)
    assert "Linear" not in text.summary(graphs.stack(2), depth=1)
    with pytest.raises(ValueError, match="depth must be >= 1, got 0"):
        text.summary(graphs.stack(2), depth=0)


def test_summary_of_a_crash_says_where_why_and_in_which_line() -> None:
    said = text.summary(graphs.crashed())
    assert "stopped by an exception" in said.splitlines()[0]
    assert "✗ fc" in said
    assert "✗ fc.linear raised RuntimeError: shapes cannot be multiplied (1x4 and 5x8)" in said
    assert "model.py:7 in forward" in said
    assert said.endswith("4 met 5.")


def test_every_failure_is_told_with_what_would_help() -> None:
    graph = graphs.crashed()
    assert graph.error is not None
    second = dataclasses.replace(graph.error, message="later", node=None, suggestions=("make it 5 wide",))
    lines = text.summary(dataclasses.replace(graph, errors=(graph.error, second))).splitlines()
    assert [line.split(" raised ")[0] for line in lines if " raised " in line] == ["✗ fc.linear", "✗ fc"]
    assert lines[-1] == "  - make it 5 wide"


def test_terminal_escapes_in_names_are_not_printed() -> None:
    said = text.summary(graphs.perceptron(name="fc\x1b[2J\r\nevil", title="Net"))
    assert "\x1b" not in said
    assert "\r" not in said
    assert all("evil" not in line or "fc" in line for line in said.splitlines())


def test_summary_of_deep_nesting_needs_no_deep_stack() -> None:
    assert len(text.summary(graphs.deep(3000), depth=3000).splitlines()) == 3000 + 5


def test_no_calls_and_no_parameters_still_make_a_summary() -> None:
    empty = dataclasses.replace(graphs.perceptron(), nodes=(), edges=(), calls=(), inputs=(), outputs=())
    assert text.summary(empty).startswith("Net · 0 module calls")
