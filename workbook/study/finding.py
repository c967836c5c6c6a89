"""Which object of a checkout is which problem's: by its adapters, run and read, and by names."""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from workbook.checks.calling import meaning
from workbook.checks.guard import TimedOut, isolated, limited
from workbook.study.checkout import ADAPTERS, Checkout, notebook_definitions
from workbook.study.problems import PROBLEMS

# The functions in `tests/adapters.py` of the course, from simple to complex: what a simple one
# uses is its own, and what a complex one uses beyond that is its.
FUNCTIONS: dict[str, tuple[str, ...]] = {
    "linear": ("run_linear",),
    "embedding": ("run_embedding",),
    "rmsnorm": ("run_rmsnorm",),
    "silu": ("run_silu",),  # no problem, but what it uses is not SwiGLU
    "softmax": ("run_softmax",),
    "rope": ("run_rope",),
    "positionwise_feedforward": ("run_swiglu",),
    "scaled_dot_product_attention": ("run_scaled_dot_product_attention",),
    "multihead_self_attention": (
        "run_multihead_self_attention_with_rope",
        "run_multihead_self_attention",
    ),
    "transformer_block": ("run_transformer_block",),
    "transformer_lm": ("run_transformer_lm",),
    "cross_entropy": ("run_cross_entropy",),
    "adamw": ("get_adamw_cls",),
    "learning_rate_schedule": ("run_get_lr_cosine_schedule",),
    "gradient_clipping": ("run_gradient_clipping",),
    "data_loading": ("run_get_batch",),
    "checkpointing": ("run_save_checkpoint", "run_load_checkpoint"),
    "tokenizer": ("get_tokenizer",),
    "train_bpe": ("run_train_bpe",),
}
CODE = tuple(problem.id for problem in PROBLEMS.values() if problem.form)
# What learners call them, in lower case and without underscores, the likelier first.
NAMES = {
    "linear": r"linear|(my|custom|naive|simple|basic)?linear(layer|module)?|llinear|lnlinear",
    "embedding": r"embedding|(my|token|custom|naive|simple|l)?embeddings?(layer|module)?",
    "rmsnorm": r"rmsnorm|(my|custom|naive|l)?rms(layer)?(norm)?(alization|layer|module)?|"
    r"rootmeansquare(layer)?norm(alization)?",
    "silu": r"(my)?(silu|swish|sigmoid)",
    "softmax": r"softmax|(my|custom|naive|stable|safe|l)?softmax(fn|func|layer|function|stable)?",
    "rope": r"rotarypositionalembedding|(my|l)?(rope|ropeembedding|rotary|rotrary)(.*embedd?ings?|"
    r".*encod.*|emb|layer|module|position.*)?|rotary?.*",
    "positionwise_feedforward": r"swiglu|(my|l)?swiglu(ffn|ff|feedforward|layer|mlp|network)?|"
    r"position?wisefeedforward(network)?|(l)?(ffn|feedforward|mlp)(network|layer|block)?|"
    r"swiglu.*|.*swiglu",
    "scaled_dot_product_attention": r"scaleddotproductattention|.*scaleddot.*att.*|sdpa|"
    r"(dotproduct|scaled|dot)?att?ention(fn|func|function)?|.*sdpa",
    "multihead_self_attention": r"multiheadselfattention|(causal)?mul?ti_?head.*att?en.*(rope)?|"
    r"(causal)?(mha|mhsa|mhattention|selfattention|multiheadattention).*|.*attention(layer|block)?",
    "transformer_block": r"transformerblock|(my|l|pre.*)?(transformer|decoder|encoder|tf|trans).*"
    r"(block|layer)|block|encoder|prenormblock|transformer",
    "transformer_lm": r"transformerlm|(my|l|lt)?transformer(lm|languagemodel|model|decoder)|"
    r"(.*)(lm|languagemodel|llm)|gpt|transformer|basicsmodel|model",
    "cross_entropy": r"crossentropy|(my|run|compute|calc|l)?crossentropy(loss|fn|func)?|celoss|ce|"
    r".*crossentropy.*",
    "adamw": r"adamw|(my|custom|naive|l)?adamw(optimizer)?|adam(optimizer)?|.*adamw",
    "learning_rate_schedule": r"schedule|(run|get|compute|calc)?(lr|learningrate)?(cos|cosine).*|"
    r".*cosine.*|(get)?(lr|learningrate)(schedule|scheduler|scheduling)?|.*(lr|rate).*sched.*|"
    r".*annealing.*",
    "gradient_clipping": r"clip|(run|apply|do)?(grad|gradient|gradients|norm)?_?clip(ping|per)?"
    r"(grad|gradient|gradients|norm|gradnorm|gradsnorm)?.*|.*clip.*",
    "data_loading": r"getbatch|(run|load|sample|get|make|create|next|random|data)?(data|mini)?"
    r"(batch|batches|loader|loading)(es)?|data_?load(er|ing)?.*|(get|load|sample)(data|.*batch).*",
    "tokenizer": r"tokenizer|(my|fast|l)?(bpe)?tokenizer(bpe|fast)?|bpe|bpeencoder|.*tokenizer",
    "train_bpe": r"trainbpe|(run|my|fast|do)?(train|build|learn)_?(bpe|tokenizer|bytepair.*).*|"
    r"bpe_?(train|trainer|training)(er|ing)?|tokenizertrain(er|ing)?|trainer|trainbpe.*|bpe",
    "decoding": r"decode|generate|(.*)generat(e|ion|or).*|(.*_)?(decode|decoding).*|sample.*|"
    r"inference|(text)?complet(e|ion)",
    "training_together": r"main|train|train(ing)?(lm|model|loop|transformer.*|llm|together|"
    r"languagemodel|run)?|run(train|training|trainingloop)?|.*train.*",
}
SAVE, LOAD = (
    rf"{verb}checkpoint|(my|do)?{verb}(model|training|train)?(checkpoint|ckpt|cp|state)s?|"
    rf"checkpoint{verb}|{verb}model|{verb}"
    for verb in ("save", "load")
)
GENERATES = ("model", "prompt", "max_new_tokens", "temperature", "top_p", "end_token", "tokenizer")
TRAINS = r"train|main|run|launch"
SECONDS = 20.0  # for one adapter; a pool of processes takes long to start
IMPORT_SECONDS = 60.0
INLINE = "its body is in tests/adapters.py"


class Candidate(NamedTuple):
    """An object that an adapter uses."""

    where: str  # module:object
    gives: bool = False  # what it returns is what the adapter returns


@dataclass
class Definition:
    """A function or class, as a file defines it."""

    where: str
    name: str
    node: ast.ClassDef | ast.FunctionDef
    file: Path
    methods: dict[str, ast.FunctionDef] = field(default_factory=dict)

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)


def find(folder: str, runs: bool) -> Iterator[dict]:
    """Find the object of each problem in a checkout; each comes as soon as it is found.

    Arguments:
        runs: whether to run the adapters, which says most; a run may end this process.

    Yields dicts: `problem`, `where` (str, two for a pair, None) and `how` in words; at first one
    with `missing` packages; and `trouble`, a sentence on what cannot be imported.
    """
    checkout = Checkout(folder)
    checkout.enter()
    needs = {top: _needed_by(checkout, files) for top, files in checkout.missing.items()}
    yield {"missing": needs}
    search = _Search(checkout)
    if checkout.find(ADAPTERS):
        yield from search.by_adapters(runs)
    yield from search.by_names()
    for trouble in dict.fromkeys(search.troubles):
        yield {"trouble": trouble}


def _needed_by(checkout: Checkout, files: list[Path]) -> list[str]:
    return [str(file.relative_to(checkout.folder)) for file in files]


class _Search:
    """What is found so far in one checkout."""

    def __init__(self, checkout: Checkout):
        self.checkout = checkout
        self.found: dict[str, str | list[str]] = {}
        self.taken: dict[int, str] = {}  # the problem that has an object, by its id
        self.objects: dict[str, Any] = {}
        self.troubles: list[str] = []
        self.definitions = list(_definitions(checkout))

    def object(self, where: str) -> Any:
        """The object of this name; None where it cannot be imported."""
        if where not in self.objects:
            try:
                with isolated():
                    get = lambda: self.checkout.object(where)  # noqa: E731
                    self.objects[where] = limited(IMPORT_SECONDS, get)
            except (ValueError, TimedOut) as error:
                self.objects[where] = None
                self.troubles.append(str(error))
        return self.objects[where]

    def take(self, problem: str, where: str | list[str], how: str) -> Iterator[dict]:
        self.found[problem] = where
        if problem in CODE:
            yield {"problem": problem, "where": where, "how": how}

    # By the adapters.

    def by_adapters(self, runs: bool) -> Iterator[dict]:
        read = _Adapters(self.checkout)
        module = None
        if runs:
            try:
                with isolated():
                    module = limited(IMPORT_SECONDS, lambda: self.checkout.imported(ADAPTERS))
            except (ValueError, TimedOut) as error:
                self.troubles.append(str(error))
        for problem, names in FUNCTIONS.items():
            if problem == "checkpointing":
                each = [self.of_adapter(problem, [name], read, module) for name in names]
                if all(each):
                    yield from self.take(problem, [where for where, _ in each], each[0][1])
            elif found := self.of_adapter(problem, names, read, module):
                yield from self.take(problem, *found)

    def of_adapter(self, problem, names, read: "_Adapters", module) -> tuple[str, str] | None:
        """The object that some adapters of a problem use, and how that was found."""
        for name in names:
            function = read.functions.get(name)
            if function is None or is_stub(function):
                continue
            if module is not None:
                seen = observe(self.checkout, module, name)
                if seen is not None and (where := self.chosen(problem, seen)):
                    return where, f"{name} calls it"
                if seen == []:
                    return f"{ADAPTERS}:{name}", INLINE
            candidates = [Candidate(each) for each in read.uses(function)]
            if where := self.chosen(problem, candidates):
                return where, f"{name} names it"
            if lost := self.lost(problem, candidates):
                return lost, f"{name} names it, but it cannot be imported"
            if self.object(f"{ADAPTERS}:{name}") is not None:
                return f"{ADAPTERS}:{name}", INLINE
        return None

    def chosen(self, problem: str, candidates: list[Candidate]) -> str | None:
        """The candidate that is likeliest the problem's own, and none other's."""
        ranked = []
        for place, each in enumerate(candidates):
            value = self.object(each.where)
            if (
                value is None
                or not callable(value)
                or self.taken.get(id(value), problem) != problem
            ):
                continue
            name = each.where.rpartition(":")[2].rpartition(".")[2]
            rank = (
                not each.gives,
                not _is_named(problem, name),
                any(_is_named(other, name) for other in FUNCTIONS if other != problem),
                isinstance(value, type) != (_form(problem) == "class"),
                -place,
            )
            ranked.append((rank, each.where, value))
        if not ranked:
            return None
        (gives_not, _, _, _, _), where, value = min(ranked, key=lambda each: each[0])
        name = where.rpartition(":")[2]
        others = [o for o in FUNCTIONS if o != problem and _is_named(o, name)]
        if gives_not and others and not _is_named(problem, name) and problem != "silu":
            return None  # a helper of another problem, used in a body of its own
        self.taken.setdefault(id(value), problem)
        return where

    def lost(self, problem: str, candidates: list[Candidate]) -> str | None:
        """What an adapter names, where its module cannot be imported here."""
        names = [each.where for each in candidates if self.object(each.where) is None]
        named = [each for each in names if _is_named(problem, each.rpartition(":")[2])]
        return next(iter(named or names), None)

    # By names.

    def by_names(self) -> Iterator[dict]:
        for problem in CODE:
            if problem in self.found:
                continue
            if problem == "checkpointing":
                pair = [self.named(problem, pattern) for pattern in (SAVE, LOAD)]
                if all(pair):
                    yield from self.take(problem, pair, "by its name")
            elif where := self.named(problem, NAMES[problem]):
                yield from self.take(problem, where, "by its name")

    def named(self, problem: str, pattern: str) -> str | None:
        """The object with the likeliest name."""
        ranked = []
        for each in self.definitions:
            places = [(each.where, each.name, each.node)]
            if problem in ("decoding", "data_loading", "checkpointing") or (
                problem in ("train_bpe", "training_together") and each.is_class
            ):
                methods = problem in ("decoding",)
                places += [
                    (f"{each.where}.{name}", name, node)
                    for name, node in each.methods.items()
                    if methods
                ]
            for where, name, node in places:
                rank = self.rank(problem, pattern, each, name, node)
                if rank is not None:
                    ranked.append((*rank, where))
        for *_, where in sorted(ranked):
            value = self.object(where)
            if callable(value) and self.taken.get(id(value), problem) == problem:
                self.taken.setdefault(id(value), problem)
                return where
        return self.script() if problem == "training_together" else None

    def rank(self, problem, pattern, definition: Definition, name: str, node) -> tuple | None:
        plain = name.lower().replace("_", "")
        alternatives = _alternatives(pattern)
        place = next((n for n, each in enumerate(alternatives) if re.fullmatch(each, plain)), None)
        if place is None or is_stub(node):
            return None
        is_class = isinstance(node, ast.ClassDef)
        form = _form(problem)
        if form == "class" and not is_class:
            return None
        path = str(definition.file.relative_to(self.checkout.folder)).lower()
        if problem == "decoding":
            arguments = (
                [a.arg for a in (*node.args.args, *node.args.kwonlyargs)] if not is_class else []
            )
            fits = len({m for a in arguments if (m := meaning(a, GENERATES))} - {"tokenizer"})
            if is_class or fits < 2 or "tokenizer" in definition.name.lower():
                return None
            place = (-fits, place)
        elif problem == "training_together":
            if (
                is_class
                or re.search("bpe|tok", f"{path} {plain}")
                or not re.search(TRAINS, path + plain)
            ):
                return None
            if not re.search("train", path + plain):
                return None
            place = ("train" not in path, place)
        if form == "class" and problem not in ("tokenizer",):
            lacks = not _is_module(node) if problem != "adamw" else not node.bases
        else:
            lacks = is_class != (form == "class")
        apart = bool(
            re.search(r"(^|/)(tests?|scripts?|experiments?|old|backup|examples?)/|test_", path)
        )
        return (lacks, place, apart, path.endswith(".ipynb"), len(path))

    def script(self) -> str | None:
        """The path of a script that trains; it has no function of its own."""
        for file in self.checkout.files:
            path = str(file.relative_to(self.checkout.folder))
            is_it = file.suffix == ".py" and "train" in file.stem.lower()
            if is_it and not re.search("bpe|tok|test", path.lower()):
                return path
        return None


def _form(problem: str) -> str:
    return PROBLEMS[problem].form if problem in PROBLEMS else "function"


def _alternatives(pattern: str) -> list[str]:
    """The parts of a pattern that stand beside each other at its top level."""
    parts, depth = [""], 0
    for sign in pattern.replace("_?", "").replace("_", ""):
        depth += (sign == "(") - (sign == ")")
        if sign == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return parts


def _is_named(problem: str, name: str) -> bool:
    plain = name.lower().replace("_", "")
    if problem == "checkpointing":
        return any(re.fullmatch(each, plain) for each in (SAVE, LOAD))
    return any(re.fullmatch(each, plain) for each in _alternatives(NAMES[problem]))


def _is_module(node: ast.ClassDef) -> bool:
    return bool(node.bases)


def is_stub(node: ast.AST) -> bool:
    """Whether a function only raises NotImplementedError, or does nothing."""
    if not isinstance(node, ast.FunctionDef):
        return False
    body = [each for each in node.body if not (_is_docstring(each) or isinstance(each, ast.Pass))]
    first = body[0] if body else None
    return first is None or (isinstance(first, ast.Raise) and "NotImpl" in ast.unparse(first))


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _definitions(checkout: Checkout) -> Iterator[Definition]:
    """What the files define at their top level, without the tests."""
    for module, file in checkout.modules.items():
        tree = checkout.trees[file]
        if module.partition(".")[0] != "tests" and isinstance(tree, ast.Module):
            yield from _defined(module, file, _top(tree.body))
    for file in checkout.files:
        if file.suffix == ".ipynb":
            name = file.relative_to(checkout.folder).as_posix()
            yield from _defined(name, file, notebook_definitions(file))


def _top(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try):
            yield from _top(node.body)


def _defined(module: str, file: Path, body) -> Iterator[Definition]:
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            methods = [
                each for each in getattr(node, "body", ()) if isinstance(each, ast.FunctionDef)
            ]
            methods = methods if isinstance(node, ast.ClassDef) else []
            by_name = {each.name: each for each in methods}
            yield Definition(f"{module}:{node.name}", node.name, node, file, by_name)


class _Adapters:
    """What `tests/adapters.py` says."""

    def __init__(self, checkout: Checkout):
        self.checkout = checkout
        tree = checkout.trees.get(checkout.find(ADAPTERS))
        self.tree = tree if isinstance(tree, ast.Module) else ast.Module([], [])
        self.functions = {
            node.name: node for node in _top(self.tree.body) if isinstance(node, ast.FunctionDef)
        }
        self.classes = {n.name for n in self.tree.body if isinstance(n, ast.ClassDef)}
        self.top = self.aliases(n for n in _top(self.tree.body) if not _is_definition(n))

    def aliases(self, nodes) -> dict[str, str]:
        """What the imports among some statements bind: a "module", or "module:object"."""
        found: dict[str, str] = {}
        for node in nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if self.checkout.find(alias.name):
                        name = alias.asname or alias.name.partition(".")[0]
                        found[name] = alias.name if alias.asname else name
            elif isinstance(node, ast.ImportFrom):
                module = _absolute(node)
                file = self.checkout.find(module)
                for alias in node.names:
                    if self.checkout.find(f"{module}.{alias.name}"):
                        found[alias.asname or alias.name] = f"{module}.{alias.name}"
                    elif file and alias.name == "*":
                        found |= {name: f"{module}:{name}" for name in self.starred(file)}
                    elif file:
                        found[alias.asname or alias.name] = f"{module}:{alias.name}"
        return found

    def starred(self, file: Path) -> Iterator[str]:
        tree = self.checkout.trees.get(file)
        for node in tree.body if isinstance(tree, ast.Module) else ():
            if _is_definition(node):
                yield node.name
            elif isinstance(node, ast.ImportFrom):
                yield from (a.asname or a.name for a in node.names if a.name != "*")

    def uses(self, function: ast.FunctionDef, seen: frozenset[str] = frozenset()) -> list[str]:
        """What a function names of the checkout, in order."""
        names = {**self.top, **self.aliases(ast.walk(function))}
        found: list[str] = []
        for node in [each for statement in function.body for each in ast.walk(statement)]:
            path = _path(node)
            if not path:
                continue
            if path[0] in names:
                where = self.resolve(names[path[0]], path[1:])
                found += [where] if where else []
            elif path[0] in self.classes:
                found.append(f"{ADAPTERS}:{path[0]}")
            elif path[0] in self.functions and path[0] not in {*seen, function.name}:
                helper = self.functions[path[0]]
                is_adapter = any(path[0] in each for each in FUNCTIONS.values())
                found += [] if is_adapter else self.uses(helper, seen | {function.name})
        # A longer path says more: `Trainer.train` is Trainer's.
        return list(dict.fromkeys(found))

    def resolve(self, base: str, rest: list[str]) -> str | None:
        """The object that a path of names leads to; None where it ends at a module."""
        while ":" not in base and rest:
            below = f"{base}.{rest[0]}"
            base = below if self.checkout.find(below) else f"{base}:{rest[0]}"
            rest = rest[1:]
        return base if ":" in base else None


def _is_definition(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.ClassDef)


def _absolute(node: ast.ImportFrom) -> str:
    """The module that an import in `tests/adapters.py` names."""
    if not node.level:
        return node.module or ""
    parts = ADAPTERS.split(".")[: -node.level]
    return ".".join([*parts, *([node.module] if node.module else [])])


def _path(node: ast.AST) -> list[str]:
    """The names in `a.b.c` as it is read; [] for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    is_read = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    return [node.id, *parts] if is_read else []


# By running.


def observe(checkout: Checkout, adapters: Any, name: str) -> list[Candidate] | None:
    """Run an adapter on small inputs, and tell which objects of the checkout it uses itself.

    Returns None where it fails, or takes too long, and so says nothing.
    """
    from workbook.study.tracing import arguments_for

    function = getattr(adapters, name, None)
    if not callable(function):
        return None
    watcher = _Watcher(checkout, adapters.__file__)
    try:
        with isolated():
            arguments = arguments_for(name)
            result = limited(SECONDS, lambda: watcher.run(function, arguments))
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return None
    return watcher.candidates(result)


class _Watcher:
    """Notes which functions and classes of a checkout its adapters call, not what those call."""

    def __init__(self, checkout: Checkout, adapters: str):
        self.folder, self.adapters = str(checkout.folder), adapters
        self.depth: list[FrameType] = []  # calls inside of the checkout
        self.calls: list[tuple[str, Any]] = []  # where, and what came back
        self.values: list[Any] = []

    def run(self, function, arguments: dict) -> Any:
        sys.setprofile(self.note)
        try:
            return function(**arguments)
        finally:
            sys.setprofile(None)

    def note(self, frame: FrameType, event: str, value: Any) -> None:
        if event == "call":
            where = self.where(frame)
            if where is not None:
                if where and not self.depth:
                    self.calls.append((where, None))
                self.depth.append(frame)
        elif event == "return" and self.depth and self.depth[-1] is frame:
            self.depth.pop()
            if not self.depth and (where := self.where(frame)):
                self.calls.append((where, value))

    def where(self, frame: FrameType) -> str | None:
        """Which object of the checkout runs in a frame; "" of a module that is imported."""
        code = frame.f_code
        if not code.co_filename.startswith(self.folder):
            return None
        if code.co_name == "<module>":
            return ""
        path = code.co_qualname
        if code.co_filename == self.adapters and "." not in path:
            return None
        if "<" in path:  # the inside of a decorator, a lambda
            return None
        first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        owner = path.rpartition(".")[0]
        if owner and first is not None:
            kind = first if isinstance(first, type) else type(first)
            if any(base.__qualname__ == owner for base in kind.__mro__):
                return f"{kind.__module__}:{kind.__qualname__}"
        return f"{frame.f_globals.get('__name__')}:{owner or path}"

    def candidates(self, result: Any) -> list[Candidate]:
        first = result[0] if isinstance(result, tuple) and result else result
        found: dict[str, bool] = {}
        for where, value in self.calls:
            inner = value[0] if isinstance(value, tuple) and value else value
            gives = value is not None and any(
                a is b for a in (value, inner) for b in (result, first)
            )
            found[where] = found.get(where, False) or gives
        kind = result if isinstance(result, type) else type(result)
        where = f"{kind.__module__}:{kind.__qualname__}"
        file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
        if file.startswith(self.folder):
            found[where] = True
        return [Candidate(where, gives) for where, gives in found.items()]
