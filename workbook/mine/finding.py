"""The object in a checkout for each problem, found by what adapters use, then by name."""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from workbook.checks.calling import meaning
from workbook.checks.timeout import TimedOut, limited
from workbook.mine.checkout import ADAPTERS, Checkout
from workbook.study.problems import PROBLEMS

# The functions in `tests/adapters.py` of the course, from simple to complex: what a simple one
# uses belongs to it, and what a complex one uses besides belongs to that one.
FUNCTIONS: dict[str, tuple[str, ...]] = {
    "linear": ("run_linear",),
    "embedding": ("run_embedding",),
    "rmsnorm": ("run_rmsnorm",),
    "silu": ("run_silu",),  # not a problem, but what it uses is not SwiGLU
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
ADAPTER_NAMES = {name for names in FUNCTIONS.values() for name in names}
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
SECONDS = 60.0  # for one import
INLINE = "its body is in tests/adapters.py"


def find(folder: str, given: dict[str, list[str]]) -> Iterator[dict]:
    """Find the object of each problem in a checkout; each comes as soon as it is found.

    Yields dicts: first, for each object `given` for a problem that cannot be used, the `problem`
    and why it is `refused`; then `problem`, `where` ("module:object", two for a pair) and `how` in
    words; at the end one `trouble` each, a sentence on what cannot be imported.
    """
    checkout = Checkout(folder)
    checkout.enter()
    for problem, wheres in given.items():
        try:
            for value in map(checkout.object, wheres):
                if not (callable(value) or isinstance(value, Path)):
                    raise ValueError(f"it is a {type(value).__name__}, not a function or class")
        except ValueError as error:
            yield {"problem": problem, "refused": str(error)}
    search = _Search(checkout)
    yield from search.by_adapters()
    yield from search.by_names()
    yield from ({"trouble": trouble} for trouble in dict.fromkeys(search.troubles))


class _Search:
    """What is found so far in one checkout."""

    def __init__(self, checkout: Checkout):
        self.checkout = checkout
        self.found: set[str] = set()  # problems
        self.taken: dict[int, str] = {}  # the problem that has an object, by its id
        self.objects: dict[str, Any] = {}
        self.troubles = [f"{n} cannot be imported: {why}" for n, why in checkout.unread.items()]

    def tried(self, function: Callable[[], Any]) -> Any:
        """Call a function that imports something; note a failure, and return None."""
        try:
            return limited(SECONDS, function)
        except (ValueError, TimedOut) as error:
            self.troubles.append(str(error))

    def object(self, where: str) -> Any:
        """The object of this name; None if it cannot be imported."""
        if where not in self.objects:
            self.objects[where] = self.tried(lambda: self.checkout.object(where))
        return self.objects[where]

    def is_free(self, where: str, problem: str) -> bool:
        """Whether it can be called, and is not the part of another problem."""
        value = self.object(where)
        return callable(value) and self.taken.get(id(value), problem) == problem

    def take(self, problem: str, each: Sequence[tuple[str, str] | None]) -> Iterator[dict]:
        """Note what was found: where, and how; two of them for a pair."""
        if all(each) and len(each) == 1 + (problem == "checkpointing"):
            self.found.add(problem)
            where = [where for where, _ in each]
            if problem != "training_together":  # importing it may start training
                self.taken |= {id(self.object(each)): problem for each in where}
            if problem in CODE:
                yield {
                    "problem": problem,
                    "where": where if len(where) > 1 else where[0],
                    "how": each[0][1],
                }

    def by_adapters(self) -> Iterator[dict]:
        adapters = Adapters(self.checkout)
        module = adapters.names and self.tried(lambda: self.checkout.imported(ADAPTERS))
        for problem in FUNCTIONS if module else ():
            uses = {name: self.uses(name, adapters, module) for name in adapters.written(problem)}
            if uses and problem != "checkpointing":  # one is enough; the second does less
                name = next((name for name in uses if uses[name]), next(iter(uses)))
                uses = {name: uses[name]}
            yield from self.take(problem, [self.used(problem, *each) for each in uses.items()])

    def uses(self, name: str, adapters: "Adapters", module: ModuleType) -> list[str]:
        """The objects of the checkout that an adapter names, also through its helpers, in order.

        The names come from its source, and their values from its module; it does not run.
        """
        found, todo, scope = [], [name], dict(vars(module))
        for each in todo:  # which grows
            node = adapters.own.get(each, ast.Name(each, ast.Load()))
            for part in ast.walk(node):
                if isinstance(part, ast.Import | ast.ImportFrom):
                    self.tried(lambda part=part: self.checkout.run_import(part, scope))
            for first, *rest in filter(None, map(_path, ast.walk(node))):
                value = scope.get(first)
                while isinstance(value, ModuleType) and rest:
                    value = getattr(value, rest.pop(0), None)
                if first not in adapters.own:
                    found += self.home(value)
                elif first not in (*todo, *ADAPTER_NAMES):
                    todo.append(first)
        return list(dict.fromkeys(found))

    def home(self, value: Any) -> list[str]:
        """Where an object of the checkout is defined; [] for any other object."""
        module, path = (getattr(value, name, None) for name in ("__module__", "__qualname__"))
        is_named = isinstance(module, str) and isinstance(path, str) and "<" not in path
        return [f"{module}:{path}"] if is_named and self.checkout.find(module) else []

    def used(self, problem: str, name: str, uses: list[str]) -> tuple[str, str] | None:
        """The object an adapter uses that is likeliest the problem's own, or else the adapter."""
        ranked = []
        others = FUNCTIONS.keys() - self.found - {problem}
        for place, where in enumerate(uses):
            own = where.rpartition(":")[2].rpartition(".")[2]
            is_named, is_others = _fits(problem, own), any(_fits(other, own) for other in others)
            # A helper in a body of its own; SiLU may be a method of the class for SwiGLU.
            is_helper = not is_named and (problem == "silu" or is_others)
            if self.is_free(where, problem) and not is_helper:
                is_class = isinstance(self.object(where), type)
                unfit = is_class != (_form(problem) == "class")
                ranked.append((not is_named, is_others, unfit, -place, where))
        if ranked:
            return min(ranked)[-1], f"{name} uses it"
        if lost := [where for where in uses if self.object(where) is None]:
            named = [where for where in lost if _fits(problem, where.rpartition(":")[2])]
            return (named or lost)[0], f"{name} uses it, but it cannot be imported"
        # `get_adamw_cls` is not an optimizer itself: it takes no arguments.
        is_part = problem not in ("silu", "adamw") and self.object(f"{ADAPTERS}:{name}")
        return (f"{ADAPTERS}:{name}", INLINE) if is_part else None

    def by_names(self) -> Iterator[dict]:
        definitions = list(_definitions(self.checkout))
        for problem in CODE:
            if problem not in self.found:
                ways = (SAVE, LOAD) if problem == "checkpointing" else (NAMES[problem],)
                wheres = [self.named(problem, patterns, definitions) for patterns in ways]
                yield from self.take(
                    problem, [where and (where, "by its name") for where in wheres]
                )

    def named(self, problem: str, patterns: str, definitions: list["Definition"]) -> str | None:
        """The object with the likeliest name."""
        ranks = [(_rank(problem, patterns, each), each.where) for each in definitions]
        wheres = [where for rank, where in sorted((r, w) for r, w in ranks if r is not None)]
        if problem == "training_together":
            return next(iter(wheres), None) or self.script()
        lost = (where for where in wheres if self.object(where) is None)
        return next((each for each in wheres if self.is_free(each, problem)), next(lost, None))

    def script(self) -> str | None:
        """The path of a script that trains, for want of a function that does."""
        for file in self.checkout.files:
            path = file.relative_to(self.checkout.folder).as_posix()
            is_it = file.suffix == ".py" and "train" in file.stem.lower()
            tree = self.checkout.trees.get(file)
            if is_it and isinstance(tree, ast.Module) and not any(map(_does, tree.body)):
                continue  # it defines functions for others to call
            if is_it and not re.search("bpe|tok|test", path.lower()) and _trains(file):
                return path
        return None


def _trains(file: Path) -> bool:
    """Whether a script may train a model: it names torch, an optimizer or a loss."""
    return bool(re.search("torch|optim|loss", file.read_text("utf-8", errors="replace"), re.I))


def _does(node: ast.stmt) -> bool:
    """Whether a statement does something, unlike definitions and imports."""
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    return is_call or isinstance(node, ast.For | ast.While | ast.With | ast.If)


def _form(problem: str) -> str:
    return PROBLEMS[problem].form if problem in PROBLEMS else "function"


def _fits(problem: str, name: str) -> bool:
    patterns = f"{SAVE} {LOAD}" if problem == "checkpointing" else NAMES[problem]
    return any(re.fullmatch(each, _plain(name)) for each in patterns.split())


def _plain(name: str) -> str:
    plain = name.lower().replace("_", "").rstrip("0123456789")
    return re.sub("^(my|run)(?=.)", "", plain)


# By names.


class Definition(NamedTuple):
    """A function, class or method, as a file defines it."""

    where: str  # module:object
    node: ast.ClassDef | ast.FunctionDef
    path: str  # of its file, in lower case


def _definitions(checkout: Checkout) -> Iterator[Definition]:
    """What the files define, without the tests."""
    for module, file in checkout.modules.items():
        if module.partition(".")[0] != "tests":
            path = file.relative_to(checkout.folder).as_posix().lower()
            for node in _top(checkout.trees[file].body):
                if _is_definition(node):
                    yield Definition(f"{module}:{node.name}", node, path)
                    for each in node.body if isinstance(node, ast.ClassDef) else ():
                        if isinstance(each, ast.FunctionDef):
                            yield Definition(f"{module}:{node.name}.{each.name}", each, path)


def _rank(problem: str, patterns: str, each: Definition) -> tuple | None:
    """Rank a definition for a problem, the lowest being the likeliest; None: it cannot be it.

    One of the wrong kind ranks last; of those with equally likely names, one among tests or scripts
    ranks below the others.
    """
    node, path, form = each.node, each.path, _form(problem)
    plain, is_class, own = _plain(node.name), isinstance(node, ast.ClassDef), each.where.lower()
    ways = enumerate(patterns.split())
    place = next((n for n, way in ways if re.fullmatch(way, plain)), None)
    if place is None or is_stub(node) or (form == "class" and not is_class):
        return None
    better = 0
    if problem == "decoding":  # a method of the model, as often as a function
        if is_class or "tokenizer" in own.rpartition(":")[2]:
            return None
        names = [each.arg for each in (*node.args.args, *node.args.kwonlyargs)]
        better = -len({meaning(each, GENERATES) for each in names} - {None, "tokenizer"})
        if better > -2:
            return None
    elif "." in own.rpartition(":")[2]:
        return None
    elif problem == "training_together":
        if is_class or "train" not in path + plain or re.search("bpe|tok", path + plain):
            return None
        better = "train" not in path
    has_no_base = form == "class" and problem != "tokenizer" and not node.bases
    lacks = has_no_base or is_class != (form == "class")
    apart = bool(re.search(r"(^|/)(tests?|scripts?|experiments?|old|backup|examples?)/", path))
    return (lacks, better, place, apart, path.endswith(".ipynb"), len(path))


def is_stub(node: ast.ClassDef | ast.FunctionDef) -> bool:
    """Whether a function only raises NotImplementedError, or does nothing."""
    # Docstrings and `...` are expressions of a constant.
    lines = [ast.unparse(each) for each in node.body if not _is_constant(each)]
    is_empty = lines in ([], ["pass"]) or re.match("raise NotImpl", lines[0])
    return isinstance(node, ast.FunctionDef) and bool(is_empty)


def _is_constant(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_definition(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.ClassDef)


def _top(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try):
            yield from _top(node.body)


# By the adapters.


class Adapters:
    """The functions in `tests/adapters.py`, read from its source."""

    def __init__(self, checkout: Checkout):
        tree = checkout.trees.get(checkout.find(ADAPTERS))
        body = list(_top(tree.body)) if tree else []
        self.own = {node.name: node for node in body if _is_definition(node)}
        imports = (node.names for node in body if isinstance(node, ast.ImportFrom))
        self.names = {alias.asname or alias.name for names in imports for alias in names}
        self.names |= {name for name, node in self.own.items() if not is_stub(node)}

    def written(self, problem: str) -> list[str]:
        """The names of the functions for a problem that exist and are not stubs."""
        return [name for name in FUNCTIONS.get(problem, ()) if name in self.names]


def _path(node: ast.AST) -> list[str]:
    """The names in `a.b.c` as it is read; [] for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    is_read = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    return [node.id, *parts] if is_read else []
