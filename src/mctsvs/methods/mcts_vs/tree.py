"""The Monte Carlo tree over groups of variables.

The root holds all variables; a split puts those with an above-average score into the left child and the rest into
the right one. A node stores its value v and its number of visits n, and children are chosen by

    UCB = v + 2 C_p sqrt(2 log(n_parent) / n)                                                             (Eq. 1)

A `Variant` says where the authors' published program differs from that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from html import escape

import numpy as np

from mctsvs.methods.mcts_vs.variant import TEXT, Variant
from mctsvs.utils.formatting import listed
from mctsvs.utils.state import Saved, dump, load
from mctsvs.utils.validation import Array, Indices, State


@dataclass(eq=False)
class Node:
    """A group of variables: A_X, with value v_X and visits n_X."""

    variables: Indices
    value: float = 0.0
    visits: int = 0
    children: tuple[Node, Node] | None = None  # left: important, right: the rest
    names: Sequence[str] = field(default=(), repr=False)  # of all variables, at the root of a tree that is to be shown

    @property
    def is_leaf(self) -> bool:
        return self.children is None

    def walk(self) -> Iterator[tuple[int, Node]]:
        """All nodes with their depth, parents first, left before right."""
        ahead = [(0, self)]
        while ahead:
            depth, node = ahead.pop()
            yield depth, node
            ahead += [(depth + 1, child) for child in reversed(node.children or ())]

    def named(self, names: Sequence[str]) -> Node:
        """The same tree, which prints these names of the variables."""
        return replace(self, names=names)

    def show(self, names: Sequence[str] = ()) -> str:
        """A line for each node, with the names of its variables where they are given."""
        return "\n".join("  " * depth + node.line(names) for depth, node in self.walk())

    def line(self, names: Sequence[str] = ()) -> str:
        count = len(self.variables)
        which = f" ({listed([names[i] for i in self.variables])})" if names else ""
        return f"{count} variable{'s' * (count != 1)}{which}, value {self.value:.4g}, visits {self.visits}"

    def __str__(self) -> str:
        return self.show(self.names)

    def _repr_html_(self) -> str:
        """Groups that unfold; those below the fourth level are closed."""
        parts: list[str] = []
        open_ = 0
        for depth, node in self.walk():
            parts += ["</details>"] * (open_ - depth)
            open_ = depth
            line = escape(node.line(self.names))
            if node.is_leaf:
                parts.append(f"<div style='margin-left:1.4em'>{line}</div>")
            else:
                shown = " open" if depth < 4 else ""
                parts.append(f"<details{shown} style='margin-left:{1.4 * (depth > 0)}em'><summary>{line}</summary>")
                open_ += 1
        return "".join([*parts, *["</details>"] * open_])


@dataclass
class Tree(Saved):
    """A tree of nodes and the four operations of Monte Carlo tree search on it."""

    root: Node
    variant: Variant = TEXT
    # visits of right children since the tree was made: how often it led to unimportant variables (n_bad)
    bad: int = field(default=0)

    @classmethod
    def new(cls, score: Array, variant: Variant = TEXT) -> Tree:
        """Only a root with all variables (lines 4 and 8)."""
        tree = cls(Node(np.arange(len(score))), variant)
        tree.root.value = tree.value(tree.root, score)
        return tree

    def value(self, node: Node, score: Array) -> float:
        """v_X: mean score of the node's variables."""
        own = score[node.variables]
        return float(own.max() if self.variant.largest_score else own.mean())

    def ucb(self, parent: Node, child: Node, cp: float) -> float:
        """Eq. 1; a child never visited comes first."""
        if child.visits == 0:
            return float("inf")
        growth = np.sqrt(parent.visits) if self.variant.root_growth else np.log(parent.visits)
        return child.value + 2.0 * cp * float(np.sqrt(2.0 * growth / child.visits))

    def select(self, cp: float, rng: np.random.Generator) -> list[int]:
        """The turns from the root to the leaf with the larger UCB at each step (line 10), 1 for right; ties are drawn.

        Each step into a right child is counted as bad (line 12).
        """
        node, turns = self.root, list[int]()
        while node.children is not None:
            left, right = (self.ucb(node, child, cp) for child in node.children)
            turns.append(int(rng.integers(2)) if left == right else int(right > left))
            self.bad += turns[-1]
            node = node.children[turns[-1]]
        return turns

    def path(self, turns: Sequence[int]) -> list[Node]:
        """The nodes on the way, root first."""
        path = [self.root]
        for turn in turns:
            children = path[-1].children
            assert children is not None
            path.append(children[turn])
        return path

    def expand(self, leaf: Node, score: Array, split_size: int = 1) -> None:
        """Split a leaf of more than N_split variables at its mean score (lines 25 and 26).

        Equal scores cannot be told apart: the leaf stays.
        """
        own, at_limit = score[leaf.variables], self.variant.split_at_limit
        if len(own) + at_limit <= split_size:
            return
        # rounding must not decide between equal scores, hence the small margin
        margin = 1e-9 * (own.max() - own.min())
        middle = np.median(own) if self.variant.median else own.mean()
        above = own >= middle - margin if at_limit else own > middle + margin
        largest = max(above.sum(), (~above).sum())
        if above.any() and not above.all() and not (at_limit and largest < split_size):
            children = Node(leaf.variables[above]), Node(leaf.variables[~above])
            for child in children:
                child.value = self.value(child, score)
            leaf.children = children

    def back_propagate(self, path: list[Node], score: Array, visits: int = 1) -> None:
        """New values and one more visit, or as many as the variant says, for all nodes of the path (line 28).

        Nodes off the path need nothing: their variables were not moved, so their scores did not change. (Values told
        after their iteration has ended are seen when a path next leads through their nodes.)
        """
        for node in path:
            node.value = self.value(node, score)
            node.visits += visits

    def state(self) -> State:
        """All nodes in walking order, a column each: a tree may be deeper than a recursion. Leaves give the shape."""
        nodes = [node for _, node in self.root.walk()]
        return {
            "variant": dump(self.variant),
            "bad": self.bad,
            "leaves": np.array([node.is_leaf for node in nodes]),
            "values": np.array([node.value for node in nodes]),
            "visits": np.array([node.visits for node in nodes]),
            "variables": [node.variables.copy() for node in nodes],
        }

    @classmethod
    def from_state(cls, state: State) -> Tree:
        rows = zip(*(state[name] for name in ("variables", "values", "visits", "leaves")), strict=True)
        open_: list[tuple[Node, list[Node]]] = []  # inner nodes with the children they have so far
        root: Node | None = None
        for variables, value, visits, leaf in rows:
            node = Node(np.array(variables), float(value), int(visits))
            root = root or node
            if open_:
                open_[-1][1].append(node)
            if not leaf:
                open_.append((node, []))
            while open_ and len(open_[-1][1]) == 2:
                parent, (left, right) = open_.pop()
                parent.children = (left, right)
        assert root is not None
        return cls(root, load(Variant, state["variant"]), state["bad"])
