"""Which object of a checkout is which problem's: by its adapters, run and read, and by names."""

import ast
import inspect
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from workbook.checks.calling import meaning
from workbook.checks.guard import TimedOut, isolated, limited
from workbook.mine.checkout import ADAPTERS, Checkout, notebook_definitions
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
# What learners call them: patterns in lower case and without underscores, the likelier first.
NAMES = {
    "linear": "linear .*linear linear(layer|module)",
    "embedding": "embedding tokenembeddings? .*embedding embeddings?(layer|module)?",
    "rmsnorm": "rmsnorm rms(layer)?(norm)?(ali[sz]ation|layer|module)? .*rmsnorm "
    "rootmeansquare(layer)?norm(ali[sz]ation)?",
    "silu": "silu swish sigmoid",
    "softmax": "softmax .*softmax softmax.*",
    "rope": "rotarypositionalembedding rope (rope|rotr?ary)(.*embedd?ings?|.*encod.*|emb|layer) "
    "(rope|rotr?ary).* .*(rope|rotary)",
    "positionwise_feedforward": "swiglu swiglu.* .*swiglu position?wisefeedforward(network)? "
    "(ffn|feedforward|mlp)(network|layer|block)?",
    "scaled_dot_product_attention": "scaleddotproductattention .*scaleddot.*att.* sdpa "
    "(dotproduct|scaled|dot)?att?ention(fn|func|function)? .*sdpa",
    "multihead_self_attention": "multiheadselfattention (causal)?mul?tihead.*att?en.* "
    "(causal)?(mha|mhsa|selfattention).* .*attention(layer|block)?",
    "transformer_block": "transformerblock (pre.*)?(transformer|decoder|encoder|tf|trans).*"
    "(block|layer) .*block encoder transformer",
    "transformer_lm": "transformerlm .*transformer(lm|languagemodel|model|decoder) "
    ".*(lm|languagemodel) gpt transformer basicsmodel model",
    "cross_entropy": "crossentropy .*crossentropy(loss|fn|func)? celoss ce .*crossentropy.*",
    "adamw": "adamw adamw(optimizer)? .*adamw adam(optimizer)?",
    "learning_rate_schedule": "schedule (get|compute|calc)?(lr|learningrate)?cos.* .*cosine.* "
    "(get)?(lr|learningrate)(schedule|scheduler|scheduling)? .*(lr|rate).*sched.* .*annealing.*",
    "gradient_clipping": "clip grad(ient)?s?(norm)?clip(ping|per)? clip(ping)?grad.* .*clip.*",
    "data_loading": "getbatch (get|load|sample|make|create|next|random)?(data|mini)?batch(es)? "
    "data(batch|load(er|ing)?).* (get|load|sample)(data|.*batch).* .*(dataloader|getbatch) "
    "sample.*data",
    "tokenizer": "tokenizer bpetokenizer tokenizer(bpe|fast)? bpe bpeencoder .*tokenizer",
    "train_bpe": "trainbpe (train|build|learn)(bpe|tokenizer|bytepair.*).* .*trainbpe "
    "bpetrain(er|ing)? tokenizertrain(er|ing)? trainer bpe",
    "decoding": "decode generate .*generat(e|ion|or).* .*(decode|decoding).* sample.* "
    "gen(text)? inference (text)?complet(e|ion)",
    "training_together": "main train train(ing)?(lm|model|loop|llm|together|run)? "
    "run(train|training|trainingloop)? (do|start|launch|pre)?train.*",
}
SAVE, LOAD = (
    f"{verb}checkpoint {verb}(model|training|train)?(checkpoint|ckpt|cp|state)s? "
    f"checkpoint{verb} {verb}model {verb}"
    for verb in ("save", "load")
)
GENERATES = ("model", "prompt", "max_new_tokens", "temperature", "top_p", "end_token", "tokenizer")
SECONDS = 20.0  # for one adapter; a pool of processes takes long to start
IMPORT_SECONDS = 60.0
DEPTH = 2  # an adapter may call another one in the package
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

    Yields dicts: `problem`, `where` (str, two for a pair, None) and `how` in words; at the
    end some with a `trouble`, a sentence on what cannot be imported.
    """
    checkout = Checkout(folder)
    checkout.enter()
    search = _Search(checkout)
    if checkout.find(ADAPTERS):
        yield from search.by_adapters(runs)
    yield from search.by_names()
    for trouble in dict.fromkeys(search.troubles):
        yield {"trouble": trouble}


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
        source, module = _source(self.checkout, ADAPTERS), None
        if runs:
            try:
                with isolated():
                    module = limited(IMPORT_SECONDS, self.checkout.imported_adapters)
            except (ValueError, TimedOut) as error:
                self.troubles.append(str(error))
        for problem, names in FUNCTIONS.items():
            if problem == "checkpointing":
                each = [self.of_adapters(problem, [name], source, module) for name in names]
                if all(each):
                    yield from self.take(problem, [where for where, _ in each], each[0][1])
            elif found := self.of_adapters(problem, names, source, module):
                yield from self.take(problem, *found)

    def of_adapters(self, problem, names, source: "Source", module) -> tuple[str, str] | None:
        """The object that one of these functions uses, and how that was found."""
        for name in names:
            if not is_written(source, name):
                continue
            seen = observe(self.checkout, module, name) if module is not None else None
            if seen is not None:
                is_class = _form(problem) == "class"
                levels = [(level, True) for level in seen if is_class] + [(seen[0], False)]
                for level, only_classes in levels:
                    if where := self.chosen(problem, level, only_classes):
                        return where, f"{name} calls it"
            if seen is None or seen[0]:
                candidates = [Candidate(each) for each in of_adapter(source, name)]
                if where := self.chosen(problem, candidates):
                    return where, f"{name} names it"
                if lost := self.lost(problem, candidates):
                    return lost, f"{name} names it, but it cannot be imported"
            # `get_adamw_cls` is no optimizer itself, as it takes nothing.
            if problem not in ("silu", "adamw") and self.object(f"{ADAPTERS}:{name}") is not None:
                return f"{ADAPTERS}:{name}", INLINE
        return None

    def chosen(
        self, problem: str, candidates: list[Candidate], only_classes: bool = False
    ) -> str | None:
        """The candidate that is likeliest the problem's own, and none other's."""
        ranked = []
        for place, each in enumerate(candidates):
            value, name = self.object(each.where), path_of(each.where).rpartition(".")[2]
            is_class = isinstance(value, type)
            if not callable(value) or (only_classes and not is_class):
                continue
            open_ = FUNCTIONS.keys() - self.found.keys() - {problem}
            others = any(_is_named(other, name) for other in open_)
            is_named = _is_named(problem, name)
            if self.taken.get(id(value), problem) != problem or (
                # A helper in a body of its own; SiLU may be a method of the class for SwiGLU.
                not is_named and (problem == "silu" or (others and not each.gives))
            ):
                continue
            unfit = is_class != (_form(problem) == "class")
            ranked.append(((not each.gives, not is_named, others, unfit, -place), each.where))
        if not ranked:
            return None
        where = min(ranked)[1]
        self.taken.setdefault(id(self.object(where)), problem)
        return where

    def lost(self, problem: str, candidates: list[Candidate]) -> str | None:
        """What an adapter names, where its module cannot be imported here."""
        names = [each.where for each in candidates if self.object(each.where) is None]
        named = [each for each in names if _is_named(problem, path_of(each))]
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

    def named(self, problem: str, patterns: str) -> str | None:
        """The object with the likeliest name."""
        ranked = []
        for each in self.definitions:
            options = [(each.where, each.node)]
            if problem == "decoding":  # a method of the model, as often as a function
                options += [(f"{each.where}.{n}", node) for n, node in each.methods.items()]
            for where, node in options:
                if (rank := self.rank(problem, patterns, each, node)) is not None:
                    ranked.append((rank, where))
        lost = None
        for _, where in sorted(ranked):
            if problem == "training_together":
                return where  # its module may begin to train when it is imported
            value = self.object(where)
            if value is None:
                lost = lost or where
            elif callable(value) and self.taken.get(id(value), problem) == problem:
                self.taken.setdefault(id(value), problem)
                return where
        return lost or (self.script() if problem == "training_together" else None)

    def rank(self, problem: str, patterns: str, definition: Definition, node) -> tuple | None:
        """How likely a definition is a problem's, the least being the likeliest; None: it is not.

        What has the wrong kind comes last, and before that what lies among tests and scripts.
        """
        plain, form, is_class = _plain(node.name), _form(problem), isinstance(node, ast.ClassDef)
        ways = enumerate(patterns.split())
        place = next((n for n, each in ways if re.fullmatch(each, plain)), None)
        if place is None or is_stub(node) or (form == "class" and not is_class):
            return None
        path = definition.file.relative_to(self.checkout.folder).as_posix().lower()
        better = 0
        if problem == "decoding":
            if is_class or "tokenizer" in definition.name.lower():
                return None
            names = [each.arg for each in (*node.args.args, *node.args.kwonlyargs)]
            better = -len({meaning(each, GENERATES) for each in names} - {None, "tokenizer"})
            if better > -2:
                return None
        elif problem == "training_together":
            if is_class or "train" not in path + plain or re.search("bpe|tok", path + plain):
                return None
            better = "train" not in path
        has_no_base = form == "class" and problem != "tokenizer" and not node.bases
        lacks = has_no_base or is_class != (form == "class")
        apart = bool(re.search(r"(^|/)(tests?|scripts?|experiments?|old|backup|examples?)/", path))
        return (lacks, better, place, apart, path.endswith(".ipynb"), len(path))

    def script(self) -> str | None:
        """The path of a script that trains; it has no function of its own."""
        for file in self.checkout.files:
            path = file.relative_to(self.checkout.folder).as_posix()
            is_it = file.suffix == ".py" and "train" in file.stem.lower()
            if is_it and not re.search("bpe|tok|test", path.lower()):
                return path
        return None


def _form(problem: str) -> str:
    return PROBLEMS[problem].form if problem in PROBLEMS else "function"


def _is_named(problem: str, name: str) -> bool:
    patterns = f"{SAVE} {LOAD}" if problem == "checkpointing" else NAMES[problem]
    return any(re.fullmatch(each, _plain(name)) for each in patterns.split())


def _plain(name: str) -> str:
    plain = name.lower().replace("_", "").rstrip("0123456789")
    return re.sub("^(my|run)(?=.)", "", plain)


def is_written(source: "Source", name: str) -> bool:
    """Whether `tests/adapters.py` has a function of this name, and it is no stub."""
    return name in source.top or (name in source.own and not is_stub(source.own[name]))


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
        if module.partition(".")[0] == "tests":
            continue
        if isinstance(tree, ast.Module):
            yield from _defined(module, file, _top(tree.body))
        else:  # in the words of another Python
            text = file.read_text(encoding="utf-8", errors="replace")
            heads = re.findall(r"^(?:class|def) \w+", text, re.MULTILINE)
            body = [ast.parse(f"{h}{'()' * h.startswith('def')}: return 0").body[0] for h in heads]
            yield from _defined(module, file, body)
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


class Source:
    """What a module of the checkout defines, imports and uses, as its text says."""

    def __init__(self, checkout: Checkout, module: str):
        self.checkout, self.module, self.file = checkout, module, checkout.find(module)
        tree = checkout.trees.get(self.file)
        self.body = tree.body if isinstance(tree, ast.Module) else []
        self.own: dict[str, ast.stmt] = {}  # the statement that binds a name
        for node in _top(self.body):
            if _is_definition(node):
                self.own[node.name] = node
            elif isinstance(node, ast.Assign):
                self.own |= {each.id: node for each in node.targets if isinstance(each, ast.Name)}
        self.top = self.imported(n for n in _top(self.body) if not _is_definition(n))

    def imported(self, nodes) -> dict[str, str]:
        """What the imports among some statements bind: a "module", or "module:object"."""
        found: dict[str, str] = {}
        for node in nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    name = alias.asname or alias.name.partition(".")[0]
                    found[name] = alias.name if alias.asname else name
            elif isinstance(node, ast.ImportFrom):
                module = self.absolute(node)
                file = self.checkout.find(module)
                for alias in node.names:
                    if file and alias.name == "*":
                        found |= {name: f"{module}:{name}" for name in self.starred(file)}
                    else:
                        below = f"{module}.{alias.name}"
                        is_module = self.checkout.find(below)
                        found[alias.asname or alias.name] = (
                            below if is_module else f"{module}:{alias.name}"
                        )
        return found

    def absolute(self, node: ast.ImportFrom) -> str:
        """The module that an import in this one names."""
        if not node.level:
            return node.module or ""
        is_package = self.file is not None and self.file.stem == "__init__"
        parts = self.module.split(".")
        parts = parts[: len(parts) - node.level + is_package]
        return ".".join([*parts, *([node.module] if node.module else [])])

    def starred(self, file: Path) -> Iterator[str]:
        tree = self.checkout.trees.get(file)
        for node in tree.body if isinstance(tree, ast.Module) else ():
            if _is_definition(node):
                yield node.name
            elif isinstance(node, ast.ImportFrom):
                yield from (a.asname or a.name for a in node.names if a.name != "*")

    def uses(self, statement: ast.stmt) -> list[str]:
        """What a statement names, its own module's and what that imports, in order."""
        names = {**self.top, **self.imported(ast.walk(statement))}
        found: list[str] = []
        for node in ast.walk(statement):
            path = _path(node)
            if path and path[0] in names:
                where = self.resolve(names[path[0]], path[1:])
                found += [where] if where else []
            elif path and self.own.get(path[0], statement) is not statement:
                found.append(f"{self.module}:{path[0]}")
        return list(dict.fromkeys(found))

    def resolve(self, base: str, rest: list[str]) -> str | None:
        """The object that a path of names leads to; None where it ends at a module."""
        while ":" not in base and rest:
            below = f"{base}.{rest[0]}"
            base = below if self.checkout.find(below) else f"{base}:{rest[0]}"
            rest = rest[1:]
        return base if ":" in base else None


def of_adapter(adapters: Source, name: str) -> list[str]:
    """What a function of `tests/adapters.py` names of the checkout, through helpers there too."""
    found, todo = [], [f"{adapters.module}:{name}"]
    known = {each for names in FUNCTIONS.values() for each in names}
    for where in todo:  # which grows
        module, _, path = where.partition(":")
        if module == adapters.module and path in adapters.top:  # imported under that name
            module = adapters.resolve(adapters.top[path], []) or module
            where, module = module, module.partition(":")[0]
        node = adapters.own.get(path) if module == adapters.module else None
        if isinstance(node, ast.FunctionDef):
            uses = adapters.uses(node)
            todo += [each for each in uses if each not in todo and path_of(each) not in known]
        elif adapters.checkout.find(module):
            found.append(where)
    return found


def path_of(where: str) -> str:
    """The object's own path in "module:object"."""
    return where.rpartition(":")[2]


def lacking(checkout: Checkout, where: str) -> set[str]:
    """The missing packages that an object needs: it names them, or what it names does."""
    found: set[str] = set()
    todo = [where]
    for each in todo:  # which grows
        module, _, path = each.partition(":")
        top = module.partition(".")[0]
        if top in checkout.missing:
            found.add(top)
        elif checkout.find(module):
            source = _source(checkout, module)
            name = path.partition(".")[0]
            uses = source.uses(source.own[name]) if name in source.own else []
            uses += [source.top[name]] if name in source.top else []
            todo += [use for use in uses if use not in todo]
    return found


@cache
def _source(checkout: Checkout, module: str) -> Source:
    return Source(checkout, module)


def _is_definition(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.ClassDef)


def _path(node: ast.AST) -> list[str]:
    """The names in `a.b.c` as it is read; [] for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    is_read = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    return [node.id, *parts] if is_read else []


# By running.


def observe(checkout: Checkout, adapters: Any, name: str) -> list[list[Candidate]] | None:
    """Run an adapter on small inputs, and tell which objects of the checkout it uses itself.

    Those that it calls come first, then those that these call. Returns None where it fails, or
    takes too long, and so says nothing.
    """
    from workbook.mine.tracing import arguments_for

    function = getattr(adapters, name, None)
    if not callable(function):
        return None
    watcher = _Watcher(checkout, adapters.__file__)
    try:
        with isolated():
            if name == "run_load_checkpoint":  # only theirs knows the form
                adapters.run_save_checkpoint(**arguments_for("run_save_checkpoint"))
            arguments = arguments_for(name)
            try:
                call = inspect.signature(function).bind(**arguments)
            except TypeError:  # other names, in the course's order
                call = inspect.signature(function).bind(*arguments.values())
            result = limited(SECONDS, lambda: watcher.run(function, call))
    except KeyboardInterrupt:
        raise
    except BaseException:
        return None
    return [watcher.candidates(result, depth) for depth in range(DEPTH)]


class _Watcher:
    """Notes which functions and classes of a checkout its adapters call, and what those call."""

    def __init__(self, checkout: Checkout, adapters: str):
        self.folder, self.adapters = f"{checkout.folder}{os.sep}", adapters
        self.inside: list[tuple[FrameType, list[str]]] = []  # calls in the checkout, not yet over
        self.calls: list[tuple[int, str, Any]] = []  # how deep, of what, and what came back

    def run(self, function, call: inspect.BoundArguments) -> Any:
        sys.setprofile(self.note)
        try:
            return function(*call.args, **call.kwargs)
        finally:
            sys.setprofile(None)

    def note(self, frame: FrameType, event: str, value: Any) -> None:
        if event == "call":
            names = self.names(frame)
            if names is not None:
                self.add(names, None)
                self.inside.append((frame, names))
        elif event == "return" and self.inside and self.inside[-1][0] is frame:
            self.add(self.inside.pop()[1], value)

    def add(self, names: list[str], value: Any) -> None:
        depth = len(self.inside)
        is_in_import = any(not names for _, names in self.inside[:DEPTH])
        if depth < DEPTH and not is_in_import:
            self.calls += [(depth, name, value) for name in names]

    def names(self, frame: FrameType) -> list[str] | None:
        """Which objects of the checkout run in a frame; [] of a module that is imported."""
        code = frame.f_code
        if not code.co_filename.startswith(self.folder):
            return None
        path = code.co_qualname
        if code.co_name == "<module>":
            return []
        is_adapter = code.co_filename == self.adapters and "." not in path
        if is_adapter or "<" in path:  # the inside of a decorator, a lambda
            return None
        module, owner = frame.f_globals.get("__name__"), path.rpartition(".")[0]
        if not owner:
            return [f"{module}:{path}"]
        first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        kind = first if isinstance(first, type) else type(first)
        if any(base.__qualname__ == owner for base in kind.__mro__):
            owner, module = kind.__qualname__, kind.__module__
            if kind is not first:
                return [f"{module}:{owner}"]
        return [f"{module}:{owner}", f"{module}:{owner}.{code.co_name}"]  # a static or class method

    def candidates(self, result: Any, depth: int) -> list[Candidate]:
        def parts(value: Any) -> list[Any]:
            return [value, *(value[:1] if isinstance(value, tuple) else ())]

        found: dict[str, bool] = {}
        for at, where, value in self.calls:
            if at == depth:
                gives = any(a is b is not None for a in parts(value) for b in parts(result))
                found[where] = found.get(where, False) or gives
        kind = result if isinstance(result, type) else type(result)
        file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
        if file.startswith(self.folder):
            found[f"{kind.__module__}:{kind.__qualname__}"] = True
        return [Candidate(where, gives) for where, gives in found.items()]
