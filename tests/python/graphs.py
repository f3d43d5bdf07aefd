"""Small graphs made by hand, for tests of what reads a graph."""

from torchatlas.graph import Coverage, Edge, Failure, Graph, ModuleCall, Node, Source, TensorSpec

ROW = TensorSpec((1, 4), "float32", "cpu", False, 16)
WIDE = TensorSpec((1, 8), "float32", "cpu", True, 32)


def perceptron(name: str = "fc", title: str = "Net") -> Graph:
    """`x` through one Linear (4 to 8) and a ReLU: 4 * 8 + 8 = 40 parameters."""
    return Graph(
        title=title,
        nodes=(
            Node(0, "x", "input", None, None, outputs=(ROW,)),
            Node(1, f"{name}.linear", "op", "linear", 1, outputs=(WIDE,), arguments=(("bias", "True"),), source=0),
            Node(2, "relu", "op", "relu", 0, outputs=(WIDE,)),
            Node(3, "output", "output", None, None, outputs=(WIDE,)),
        ),
        edges=(Edge(0, 1, 0, "input", ROW), Edge(1, 2, 0, "input", WIDE), Edge(2, 3, 0, "output", WIDE)),
        calls=(
            ModuleCall(0, title, "", title, None, inputs=(ROW,), outputs=(WIDE,), metrics={"parameters": 40}),
            ModuleCall(1, name, name, "Linear", 0, inputs=(ROW,), outputs=(WIDE,), metrics={"parameters": 40}),
        ),
        inputs=(0,),
        outputs=(3,),
        sources=(Source("model.py", 7, "forward", ("x = self.fc(x)", "return relu(x)"), 7),),
        coverage=Coverage(operations=2, nodes=2),
    )


def crashed() -> Graph:
    """The Linear of `perceptron` fails: nothing comes after it."""
    whole = perceptron()
    failed = Node(1, "fc.linear", "op", "linear", 1, "failed", source=0)
    return Graph(
        title="Net",
        nodes=(whole.nodes[0], failed),
        edges=whole.edges[:1],
        calls=(
            ModuleCall(0, "Net", "", "Net", None, "failed", inputs=(ROW,)),
            ModuleCall(1, "fc", "fc", "Linear", 0, "failed", inputs=(ROW,)),
        ),
        inputs=(0,),
        sources=whole.sources,
        error=Failure("RuntimeError", "shapes cannot be multiplied (1x4 and 5x8)", 1, (0, 1), 0, "4 met 5."),
        coverage=Coverage(operations=1, nodes=1),
    )


def stack(blocks: int) -> Graph:
    """Equal blocks in a row, each one Linear."""
    whole = perceptron()
    calls = [whole.calls[0]]
    nodes = [whole.nodes[0]]
    for number in range(blocks):
        calls.append(ModuleCall(len(calls), f"h.{number}", f"h.{number}", "Block", 0, outputs=(ROW,)))
        calls.append(
            ModuleCall(len(calls), f"h.{number}.fc", f"h.{number}.fc", "Linear", len(calls) - 1, outputs=(ROW,))
        )
        nodes.append(Node(len(nodes), f"h.{number}.fc.linear", "op", "linear", len(calls) - 1, outputs=(ROW,)))
    edges = tuple(Edge(node.id - 1, node.id, 0, "input", ROW) for node in nodes[1:])
    return Graph("Net", tuple(nodes), edges, tuple(calls), inputs=(0,))


def deep(levels: int) -> Graph:
    """Modules nested `levels` deep with one operation in the innermost."""
    names = [".".join(["m"] * level) for level in range(1, levels + 1)]
    calls = [ModuleCall(0, "Net", "", "Net", None)]
    calls += [ModuleCall(level, name, name, "M", level - 1) for level, name in enumerate(names, 1)]
    nodes = (Node(0, "x", "input", None, None, outputs=(ROW,)), Node(1, names[-1] + ".relu", "op", "relu", levels))
    return Graph("Net", nodes, (Edge(0, 1, 0, "input", ROW),), tuple(calls), inputs=(0,))
