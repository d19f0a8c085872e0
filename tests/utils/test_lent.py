"""Arrays without a count of owners (`lent`) are arguments of the function that lends them, and nobody keeps them.

What a function made itself is freed after the last use of the name that owns it, whoever it was lent to; and what
outlives the call, by being returned or put into something, would be read after its owner is gone.
"""

import ast
import re
from pathlib import Path

import pytest

import bagwise

SOURCE = Path(bagwise.__file__).parent
LENDERS = "_lent_"  # how functions are called whose only work is to lend what they are given


def root(node):
    """The name that a chain of attributes and indices begins with, or None."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def parameters(function):
    return [argument.arg for argument in function.args.args]


def called(node):
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None


def assigned(function):
    """Names that a function gives another value."""
    return {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


class Check:
    """What is wrong with how a module lends arrays."""

    def __init__(self, source):
        tree = ast.parse(source)
        self.functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        self.wrong = []
        self.lends = 0
        self.followed = set()
        in_functions = [call for function in self.functions.values() for call in self.loans(function)]
        if len(in_functions) != len(list(self.loans(tree))):
            self.wrong.append("something is lent outside of a function")
        for function in self.functions.values():
            self.look_at(function)

    @staticmethod
    def loans(node):
        return [inner for inner in ast.walk(node) if called(inner) == "lent"]

    def look_at(self, function):
        names = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == "lent"]
        loans = self.loans(function)
        if len(names) != len(loans):
            self.wrong.append(f"{function.name} uses lent without calling it")
        if loans:
            self.lends += len(loans)
            if not function.name.startswith(LENDERS):
                self.wrong.append(f"{function.name} lends, but its name does not begin with {LENDERS}")
            self.only_parameters(function, [argument for loan in loans for argument in loan.args])
        borrowed = {}
        for node in ast.walk(function):
            name = called(node) or ""
            if name.startswith(LENDERS):
                self.only_parameters(function, node.args)
                borrowed[node] = name
        if borrowed:
            self.follow(function, self.targets(function, borrowed))

    def only_parameters(self, function, arguments):
        own = set(parameters(function)) - assigned(function)
        for argument in arguments:
            if root(argument) not in own:
                self.wrong.append(f"{function.name} lends {ast.unparse(argument)}, which it was not given as it is")

    def targets(self, function, borrowed):
        """The local names that hold what was borrowed; anything but a plain assignment to names is wrong."""
        names, left = set(), set(borrowed)
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                target, value = node.targets[0], node.value
                pairs = [(target, value)]
                if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                    pairs = list(zip(target.elts, value.elts, strict=True))
                for to, what in pairs:
                    if what in borrowed and isinstance(to, ast.Name):
                        names.add(to.id)
                        left.discard(what)
        for node in left:
            self.wrong.append(f"{function.name} does not keep {ast.unparse(node)} in a name of its own")
        return names

    def follow(self, function, held):
        """Whatever is lent under these names may be read and passed on, in this function and those that it calls."""
        key = function.name, frozenset(held)
        if key in self.followed:
            return
        self.followed.add(key)
        held = set(held)
        for node in ast.walk(function):  # other names for the same arrays
            if isinstance(node, ast.Assign) and self.is_array(node.value, held):
                targets = [part for to in node.targets for part in (to.elts if isinstance(to, ast.Tuple) else [to])]
                held |= {target.id for target in targets if isinstance(target, ast.Name)}
                if not all(isinstance(target, ast.Name) for target in targets):
                    self.wrong.append(f"{function.name} puts {ast.unparse(node.value)} into something")
        for node in ast.walk(function):
            if isinstance(node, ast.Return | ast.Yield) and node.value is not None:
                parts = node.value.elts if isinstance(node.value, ast.Tuple | ast.List) else [node.value]
                for part in parts:
                    if self.is_array(part, held):
                        self.wrong.append(f"{function.name} gives {ast.unparse(part)} back")
            elif isinstance(node, ast.Call):
                self.follow_call(function, node, held)

    def is_array(self, node, held):
        return isinstance(node, ast.Name | ast.Attribute) and root(node) in held

    def follow_call(self, function, call, held):
        passed = [place for place, argument in enumerate(call.args) if self.is_array(argument, held)]
        if not passed or called(call) == "len":
            return
        other = self.functions.get(called(call) or "")
        if other is None:
            self.wrong.append(f"{function.name} passes what is lent to {ast.unparse(call.func)}, which is not here")
        else:
            self.follow(other, {parameters(other)[place] for place in passed})


def modules_that_lend():
    return [path for path in sorted(SOURCE.rglob("*.py")) if "import lent" in path.read_text(encoding="utf-8")]


def test_whoever_imports_it_is_found():
    using = [path for path in SOURCE.rglob("*.py") if re.search(r"\blent\(", path.read_text(encoding="utf-8"))]
    assert sorted(using) == modules_that_lend()
    assert modules_that_lend(), "nobody lends any more: `lent` and this test can go"


@pytest.mark.parametrize("path", modules_that_lend(), ids=lambda path: path.stem)
def test_only_arguments_are_lent_and_nobody_keeps_them(path):
    check = Check(path.read_text(encoding="utf-8"))
    assert check.lends > 0
    assert check.wrong == []


GOOD = """
def _lent_pair(pair):
    return lent(pair.a), lent(pair.b)

def total(pair, n):
    its = _lent_pair(pair)
    value = 0
    for i in range(n):
        value += one(its, i)
    return value

def one(pair, i):
    a = pair[0]
    return a[i] + len(a)
"""


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("its = _lent_pair(pair)", "pair = make(n)\n    its = _lent_pair(pair)", "was not given as it is"),
        ("its = _lent_pair(pair)", "own = make(n)\n    its = _lent_pair(own)", "was not given as it is"),
        (
            "return lent(pair.a), lent(pair.b)",
            "own = pair.a\n    return lent(own), lent(pair.b)",
            "was not given as it",
        ),
        ("return value", "return its", "gives its back"),
        ("return value", "return value, its", "gives its back"),
        ("    return value", "    pair[0] = its\n    return value", "puts its into something"),
        ("    return value", "    other = its\n    return other", "gives other back"),
        ("    return value", "    a, b = its\n    return a", "gives a back"),
        ("    return value", "    keep(its)\n    return value", "passes what is lent to keep"),
        ("return a[i] + len(a)", "return pair", "gives pair back"),
        ("its = _lent_pair(pair)", "its = lent(pair)", "does not begin with"),
        ("its = _lent_pair(pair)", "its = [_lent_pair(pair)]", "does not keep"),
        ("its = _lent_pair(pair)", "borrow = lent\n    its = borrow(pair)", "without calling it"),
    ],
)
def test_what_would_outlive_its_owner_is_noticed(before, after, said):
    assert Check(GOOD).wrong == []
    assert before in GOOD
    assert any(said in one for one in Check(GOOD.replace(before, after)).wrong)
