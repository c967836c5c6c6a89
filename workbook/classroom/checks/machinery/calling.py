"""Call a learner's part as its own signature asks: arguments by name first, then by position.

A problem names its arguments as the handout does; a learner may have other names, another order,
a config object, or more parameters. `bind` gives each value to the parameter that means it. If a
signature has no place for a value, the learner is told so, and no value ever lands on a parameter,
such as `device` or `use_rope`, that means something else.
"""

import inspect
import os
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from functools import partial
from inspect import Parameter
from io import IOBase
from itertools import takewhile
from typing import Any, NamedTuple, get_args

from workbook.classroom.checks.machinery.verdicts import (
    CALLED,
    NOT_GIVEN,
    Prose,
    Wrong,
    call,
    work_of,
)

# By the handout's name: a pattern of what else learners call it, in lower case and without
# underscores. Other names are matched by position, and so are single letters: `d` is d_model, d_k
# or d_ff.
SYNONYMS = {
    # sizes
    "vocab_size": "nvocab|vocabularysize|vocabsz|vocab|numembeddings|ntokens|numtokens",
    "context_length": "maxseqlen|maxseqlength|maxsequencelength|seqlen|seqlength|sequencelength|"
    "contextlen|contextsize|contextwindow|blocksize|maxlen|maxlength|nctx|ctxlen|ctx|length",
    "d_model": "dmodel|modeldim|dimmodel|embeddim|embdim|embeddingdim|embedsize|hiddensize|"
    "hiddendim|nembd|dim|normalizedshape|size|infeatures|features|width|din|indim|inputdim",
    "num_layers": "nlayers|nlayer|layers|numblocks|nblocks|depth|numtransformerlayers",
    "num_heads": "nheads|nhead|heads|numattentionheads|numhead|nhd",
    "d_ff": "dff|ffdim|ffndim|dimff|dimfeedforward|dfeedforward|feedforwarddim|intermediatesize|"
    "hiddendim|hiddensize|dhidden|dinner|innerdim|dmlp|mlpdim|ff|ffsize",
    "d_k": "dk|dhead|headdim|headsize|dkey|dimk|dimhead|dim|dmodel|embeddim",
    "d_v": "dvalue|dimv|vdim",
    "theta": "ropetheta|rotarytheta|thetabase|base|ropebase|freqbase|thetavalue",
    "rope_theta": "theta|rotarytheta|base|ropebase|thetabase",
    "in_features": "din|dimin|indim|inputdim|infeature|nin|fanin|insize|inputsize|inputfeatures|"
    "dinput|indims|inchannels",
    "out_features": "dout|dimout|outdim|outputdim|outfeature|nout|fanout|outsize|outputsize|"
    "outputfeatures|doutput|outdims|outchannels",
    "num_embeddings": "vocabsize|nvocab|vocabularysize|vocab|ntokens|numtokens|numembedding|nemb",
    "embedding_dim": "dmodel|embeddim|embdim|dim|hiddensize|nembd|dembed|embeddingsize",
    "eps": "epsilon",
    # inputs
    "token_positions": "positions|pos|position|positionids|posids|tokenposition",
    "dim": "axis",
    "Q": "query|queries",
    "K": "key|keys",
    "V": "value|values",
    "mask": "attnmask|attentionmask|causalmask",
    "logits": "inputs|input|preds|pred|predictions|outputs|output|yhat|scores|predlogits",
    "targets": "target|labels|label|ytrue|gold|nexttokens|xnext|answers",
    # optimizer and training
    "params": "parameters|param|modelparams|modelparameters|weights",
    "lr": "learningrate|alpha|stepsize|rate|eta|maxlr",
    "betas": "beta",
    "weight_decay": "decay|wd|lam|lambd|lambda|weightdecayrate",
    "parameters": "params|param|modelparams|modelparameters|weights|parameterlist|grads",
    "max_l2_norm": "maxnorm|maxl2|maxgradnorm|l2norm|clip|clipvalue|clipnorm|threshold|maxl2norm",
    "it": "step|iteration|iter|stepnum|currentstep|currentiter|curstep",
    "max_learning_rate": "maxlr|lrmax|alphamax|amax|maxrate|maxlearnrate|high|peaklr|lr|"
    "learningrate|baselr|initlr|initiallr|etamax",
    "min_learning_rate": "minlr|lrmin|alphamin|amin|minrate|minlearnrate|low|finallr|endlr|etamin",
    "warmup_iters": "warmup|warmupsteps|tw|twarmup|warmupiterations|numwarmupsteps|warm|nwarmup|"
    "warmupt|lrwarmupiters|lrwarmupsteps|numwarmupiters",
    "cosine_cycle_iters": "tc|cosineiters|cosinesteps|cosinecycle|totaliters|totalsteps|maxiters|"
    "tcosine|cosineannealingiters|cosinecyclesteps|end|annealingiters|annealiters|tmax|cossteps|"
    "lrdecayiters|lrdecaysteps|lrcosineiters|lrcosinecycleiters",
    "batch_size": "bs|batch|batchsz|numsequences|trainbatchsize|evalbatchsize|valbatchsize|"
    "microbatchsize|minibatchsize",
    "device": "dev",
    "model": "lm|net|network|module|transformer|transformerlm|languagemodel|self|generator",
    "optimizer": "optim|opt",
    "iteration": "it|step|iter|epoch",
    "out": "path|file|dst|dest|destination|outpath|outputpath|filename|filepath|fp|target|"
    "checkpointpath|ckptpath|savepath|output",
    "src": "path|file|source|in|inpath|inputpath|filename|filepath|fp|checkpointpath|ckptpath|"
    "loadpath",
    # tokenizer
    "input_path": "path|file|filepath|filename|infile|inpath|corpuspath|textpath|corpus|inputfile",
    "special_tokens": "specials|specialtoks|special|specialtokenlist",
    "num_processes": "numworkers|nworkers|workers|processes|nprocesses|numproc|nproc|njobs",
    "vocab": "vocabulary|idtobytes",
    "merges": "bpemerges|mergelist",
    # generation
    "prompt": "promptids|prompttokens|prompttokenids|inputids|inputtokens|tokens|tokenids|ids|idx|"
    "context|text|prompttext|input|inputs|startids|start|prefix|seq|sequence",
    "max_new_tokens": "maxtokens|maxnew|maxlength|maxlen|numtokens|ntokens|maxgen|maxgenlen|"
    "length|maxtokenstogenerate|maxgeneratedtokens|maxnumtokens|steps|maxsteps|maxoutputtokens|"
    "tokenlimit",
    "temperature": "temp|tau|softmaxtemperature",
    "top_p": "p|topp|nucleusp|nucleus|ptop|threshold|topnucleus|pthreshold|toppthreshold",
    "end_token": "endtokenid|eostokenid|eosid|eos|eot|eotid|eottokenid|endoftext|endoftextid|"
    "specialtokenids|endoftexttokenid|endid|eostoken|stoptoken|stopid|stoptokenid|stoptokenids|stop|end",
    "tokenizer": "tok|bpe|enc|encoder|bpetokenizer|tokenizerinstance|vocab",
    "rope": "rotary|ropemodule|ropelayer|ropeemb|rotaryemb|rotaryembedding|posenc|posencoder|"
    "posencoding|posemb|posembed|positionalencoding|positionalencoder|positionalembedding|pe|"
    "positionencoding|positionembedding|rotarypositionalembedding",
}
SYNONYMS["max_seq_len"] = SYNONYMS["context_length"] + "|contextlength"


# The arguments of a model, by the handout's names.
MODEL_ARGUMENTS = (
    *("vocab_size", "context_length", "d_model", "num_layers", "num_heads", "d_ff", "rope_theta"),
)
# Annotations, as types and as they are written under `from __future__ import annotations`.
SCALARS = (int, float, str, "int", "float", "str")
# Parameters that say how, not what, and what they get where they have no default.
HOW = {
    **dict.fromkeys(["device", "dtype", "rope", "generator", "rng", "topk"]),
    **dict.fromkeys(["bias", "verbose", "training", "usecache"], False),
    **dict.fromkeys(["dropout", "pdrop", "dropoutp", "attndropout", "residdropout"], 0.0),
    **dict.fromkeys(["layeridx", "layerindex", "layerid", "blockidx", "blockindex", "seed"], 0),
    **dict.fromkeys(["eps", "epsilon"], 1e-5),
}
CONFIGS = {"config", "cfg", "args", "hparams", "params", "modelconfig", "trainconfig", "settings"}
CONFIGS |= {"options", "opt", "conf"}
OFF = re.compile(r"(no|without|remove|disable|skip|drop|omit|ablate)(_|rope|rotary)", re.I)
SWITCH = re.compile(rf"(use|with|is|do|enable|has|apply)_.+|(use|with)rope|{OFF.pattern}.*", re.I)
# What the course's model does not have, so that a switch for it is off.
BESIDES = re.compile(r"post|bias|dropout|tie|qk|flash", re.I)


class Binding(NamedTuple):
    """Arguments that fit a signature, and the values that it has no place for."""

    args: tuple
    kwargs: dict[str, Any]
    left: dict[str, Any]


def bind(
    function: Callable,
    values: Mapping[str, Any],
    *,
    optional: Collection[str] = (),
    extras: Mapping[str, Any] | None = None,
    given: Any = None,
    partly: bool = False,
    rope: bool | None = None,
) -> Binding:
    """Give each value to the parameter of `function` that means it.

    Args:
        values: by the handout's names, in the handout's order.
        optional: names of values that a signature need not have a place for.
        extras: values, by name, for parameters that the handout does not have, such as `d_v` or
            `tokenizer`: used only if the signature has one without a default.
        given: the call in words, for the report.
        partly: whether any value may be left over, as when a class takes some and its call others.
        rope: on or off, for a signature that has a switch for RoPE, such as `use_rope`.

    Raises: Unfit where a value has no place, or a parameter no value.
    """
    signature = signature_of(function)
    kinds = {parameter.kind for parameter in signature or ()}
    if signature is None or (Parameter.VAR_POSITIONAL in kinds and not partly):
        return Binding(tuple(values.values()), {}, {})  # in the handout's order
    parameters = [p for p in signature if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    extras = extras or {}
    deal = _Deal(parameters, values, extras, optional)
    deal.by_position(partly)
    lacking = []
    try:
        for parameter in parameters:
            if parameter.name in deal.bound:
                continue
            is_empty = parameter.default is parameter.empty
            # A config is made even if it has a default, when values have no other place.
            if is_config(parameter) and (is_empty or (deal.needed and not partly)):
                deal.bound[parameter.name] = _config(parameter, values, extras, given, rope)
                deal.left.clear()
            elif is_empty and (value := deal.other_value(parameter)) is not NOT_GIVEN:
                deal.bound[parameter.name] = value
            elif is_empty:
                lacking.append(f"`{parameter.name}`")
        if lacking:
            raise _Misfit(f"the problem has no value for {', '.join(lacking)}")
        if Parameter.VAR_KEYWORD in kinds and not partly:
            deal.bound |= deal.left
            deal.left.clear()
        elif deal.needed and not partly:
            raise _Misfit(_which(parameters, deal.bound, deal.needed[0]))
    except _Misfit as why:
        raise _refusal(function, given, why) from None
    if rope is not None:
        switches = [parameter.name for parameter in parameters if switches_rope(parameter)]
        deal.bound |= {name: rope != bool(OFF.match(name)) for name in switches}
    by_place = [p.name for p in parameters if p.kind is p.POSITIONAL_ONLY]
    if _hands_on_places(function):
        leading = takewhile(lambda parameter: parameter.name in deal.bound, parameters)
        by_place = [p.name for p in leading if p.kind is not p.KEYWORD_ONLY]
    return Binding(tuple(deal.bound.pop(name) for name in by_place), deal.bound, deal.left)


class Unfit(Wrong):
    """A signature that does not fit the values, so that nothing was called."""


class _Misfit(Exception):  # noqa: N818 - a finding, not an error
    """Why a signature does not fit the values, in words."""


class _Deal:
    """Values that find their parameters step by step: which are bound, and which are left."""

    def __init__(
        self,
        parameters: list[Parameter],
        values: Mapping[str, Any],
        extras: Mapping[str, Any],
        optional: Collection[str],
    ):
        """Bind what the names of the parameters say."""
        self.parameters = parameters
        self.extras = extras
        self.optional = optional
        self.meant = _by_name(parameters, {**values, **extras}, prefer=values)
        self.bound = {one: values[name] for one, name in self.meant.items() if name in values}
        self.left = {n: value for n, value in values.items() if n not in self.meant.values()}

    @property
    def needed(self) -> list[str]:
        """The values left that must have a place."""
        return [name for name in self.left if name not in self.optional]

    def by_position(self, partly: bool) -> None:
        """Give each parameter whose name says nothing the next value that no name asked for."""
        unknown = [p for p in self.parameters if p.name not in self.meant and _takes_any(p)]
        for name in self.needed:
            places = [parameter for parameter in unknown if _fits(parameter, self.left[name])]
            if not places or (partly and places[0].default is not Parameter.empty):
                break
            unknown.remove(places[0])
            self.bound[places[0].name] = self.left.pop(name)

    def other_value(self, parameter: Parameter) -> Any:
        """A value for a parameter that must have one; NOT_GIVEN if there is none."""
        name = parameter.name
        meant = self.meant.get(name)
        if meant in self.extras:
            return self.extras[meant]
        if _says_how(parameter):
            return HOW.get(plain(name), not (OFF.match(name) or BESIDES.search(name)))
        for spare in self.left:
            # A None that only this check hands over would be no fault of theirs.
            value = self.left[spare]
            if spare in self.optional and value is not None and _fits(parameter, value):
                return self.left.pop(spare)
        return NOT_GIVEN


def _hands_on_places(function: Callable) -> bool:
    """Whether it is wrapped in a function that takes `*args`, and maybe nothing by name."""
    with suppress(ValueError):  # it wraps itself
        outer = inspect.unwrap(function, stop=_takes_places)
        return _takes_places(outer) and not inspect.isclass(function)
    return False


def _takes_places(function: Callable) -> bool:
    """Whether a function itself, and not what it wraps, takes any number of arguments by place."""
    with suppress(ValueError, TypeError):  # a builtin, such as the wrapper of a cache
        own = inspect.signature(function, follow_wrapped=False).parameters.values()
        return any(parameter.kind is parameter.VAR_POSITIONAL for parameter in own)
    return False


def _config(
    parameter: Parameter, values: Mapping, extras: Mapping, given: Any, rope: bool | None
) -> Any:
    """A learner's config that is made of the values it has fields for. Raises: _Misfit."""
    if not is_config_class(parameter):
        raise _Misfit(f"of which dataclass is `{parameter.name}`? Annotate it.")
    options: dict[str, Any] = {"optional": values, "extras": extras, "rope": rope}
    return call_bound(parameter.annotation, values, given=given, **options)


def call_bound(
    function: Callable,
    values: Mapping[str, Any],
    *,
    given: Any = None,
    seconds: float = 5.0,
    **options: Any,
) -> Any:
    """Call a learner's function, or make an object of a class, with the values that `bind` binds.

    Raises: Wrong and NotAttempted, as `verdicts.call` does.
    """
    args, kwargs, _ = bind(function, values, given=given, **options)
    return call(function, *args, given=given, seconds=seconds, **kwargs)


class Runner:
    """Runs what a learner hands in: calls it as the problem says, with the values of a case.

    Each kind of runner has a method `run`, which takes a case and gives its result, in the one form
    in which results are compared. It raises Wrong and NotAttempted, as `verdicts.call` does.
    """

    def __init__(self, attempt: Any):
        self.attempt = attempt


def callable_part(
    attempt: Callable,
    values: Mapping[str, Any],
    *,
    optional: Collection[str] = (),
    extras: Mapping[str, Any] | None = None,
    given: Any = None,
    seconds: float = 5.0,
) -> Callable[[], Any]:
    """A learner's function bound to the arguments that a problem names, to be called at will.

    If it is a class, an instance is made and the method that does the work is called, as in
    `Softmax(dim)(x)` or `Trainer(vocab_size).train(path)`. Raises, here and when called: Wrong and
    NotAttempted, as `verdicts.call` does.
    """
    options = {"extras": extras, "given": given}
    if inspect.isclass(attempt):
        work = work_of(attempt)
        asked = [p.name for p in parameters_of(getattr(attempt, work))]
        its = {name for name in (meaning(field, values) for field in asked) if name}
        args, kwargs, left = bind(attempt, values, partly=True, optional=its, **options)
        attempt = call(attempt, *args, seconds=seconds, given=given, **kwargs)
        optional = {*optional, *(values.keys() - left.keys())}
        if work not in CALLED:
            attempt = getattr(attempt, work)
    attempt = getattr(attempt, "forward", attempt)
    return partial(call_bound, attempt, values, optional=optional, seconds=seconds, **options)


def call_part(attempt: Callable, values: Mapping[str, Any], **options: Any) -> Any:
    """Call a learner's function once, as `callable_part` says."""
    return callable_part(attempt, values, **options)()


def parameters_of(function: Any) -> list[Parameter]:
    """The parameters of a learner's part, with those of a config object in its place."""
    parameters: list[Parameter] = []
    for p in signature_of(function) or ():
        parameters += parameters_of(p.annotation) if is_config_class(p) else [p]
    return parameters


def signature_of(function: Any) -> list[Parameter] | None:
    """The parameters of a function, without `| None`; None for a builtin that reveals none."""
    for evaluated in (True, False):  # annotations may be strings, and name what is not defined
        with suppress(Exception):
            signature = inspect.signature(function, eval_str=evaluated)
            return [
                parameter.replace(annotation=_without_none(parameter.annotation))
                for parameter in signature.parameters.values()
            ]
    return None


def _without_none(kind: Any) -> Any:
    """The type in `type | None`."""
    kinds = [member for member in get_args(kind) if member is not type(None)]
    return kinds[0] if len(kinds) == 1 < len(get_args(kind)) else kind


def meaning(name: str, names: Collection[str]) -> str | None:
    """The one of the handout's `names` that a learner's parameter name means, or None."""
    exact = [candidate for candidate in names if _is(name, candidate)]
    alike = [candidate for candidate in names if _is_synonym(name, candidate)]
    return next(iter(exact + alike), None)


def for_optimizer(part: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of an optimizer, with the two betas apart for a class that takes them so."""
    names = {plain(parameter.name) for parameter in parameters_of(part)}
    values = dict(values)
    if {"beta1", "beta2"} <= names:
        values["beta1"], values["beta2"] = values.pop("betas")
    return values


def _is(name: str, meant: str) -> bool:
    return plain(name) == plain(meant)


def _is_synonym(name: str, meant: str) -> bool:
    return meant in SYNONYMS and bool(re.fullmatch(SYNONYMS[meant], plain(name)))


def plain(name: str) -> str:
    """A name as names are compared: in lower case, without underscores."""
    return name.lower().replace("_", "")


def _by_name(
    parameters: list[Parameter], values: Collection[str], prefer: Collection[str]
) -> dict[str, str]:
    """The handout's name by the learner's, for the parameters whose names say it.

    Exact names are dealt out first, then synonyms, beginning with those that mean one thing only:
    of `(hidden_dim, dim)`, the second is d_model and leaves d_ff to the first. Names that are
    not in `prefer` come last: few signatures ask for d_k, which `dim` may mean as well.
    """
    meant: dict[str, str] = {}
    for names in (prefer, [name for name in values if name not in prefer]):
        for says in (_is, _is_synonym):
            candidates = {
                parameter.name: [name for name in names if says(parameter.name, name)]
                for parameter in parameters
                if parameter.name not in meant
            }
            for parameter, candidate in sorted(candidates.items(), key=lambda item: len(item[1])):
                free = [name for name in candidate if name not in meant.values()]
                if free:
                    meant[parameter] = free[0]
    return meant


def is_switch(parameter: Parameter) -> bool:
    """Whether a parameter takes yes or no."""
    yes_or_no = isinstance(parameter.default, bool) or parameter.annotation in (bool, "bool")
    return yes_or_no or bool(SWITCH.fullmatch(parameter.name))


def switches_rope(parameter: Parameter) -> bool:
    """Whether a parameter turns RoPE on or off."""
    return is_switch(parameter) and bool(re.search("rope|rotary", parameter.name.lower()))


def _says_how(parameter: Parameter) -> bool:
    """Whether a parameter means how something is done, so that no value goes there by position."""
    name = plain(parameter.name)
    known = name in HOW or _is_synonym(name, "rope") or _is_synonym(name, "device")
    is_share = name.endswith(("ratio", "frac", "fraction"))  # of another number
    return known or is_share or is_switch(parameter)


def _takes_any(parameter: Parameter) -> bool:
    """Whether a value may go to a parameter by position, because its name says nothing.

    Neither `weights=None`, whose name means another value, nor `mode="pre"` takes a number.
    """
    says_nothing = not meaning(parameter.name, SYNONYMS) and type(parameter.default) is not str
    needs_one = parameter.default is parameter.empty
    return (needs_one or says_nothing) and not _says_how(parameter) and not is_config(parameter)


def _fits(parameter: Parameter, value: Any) -> bool:
    """Whether a parameter, whatever its name, may hold a value.

    Only a path names a file, and no list or dict is a number or a text.
    """
    names_file = plain(parameter.name).endswith(("path", "file", "dir", "folder"))
    if isinstance(value, list | dict):
        return not names_file and parameter.annotation not in SCALARS
    return not names_file or isinstance(value, str | os.PathLike | IOBase)


def is_config(parameter: Parameter) -> bool:
    """Whether a parameter takes all settings as one object."""
    return is_config_class(parameter) or plain(parameter.name) in CONFIGS


def is_config_class(parameter: Parameter) -> bool:
    """Whether a parameter is annotated with a class of settings."""
    kind = parameter.annotation
    return inspect.isclass(kind) and (is_dataclass(kind) or hasattr(kind, "model_fields"))


def _which(parameters: list[Parameter], bound: Mapping[str, Any], missing: str) -> str:
    """The question to ask when a value has no place: "your third argument is `use_rope`; ..."."""
    places = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
    for place, parameter in zip(places, parameters, strict=False):
        if parameter.name not in bound:
            return f"your {place} argument is `{parameter.name}`; which one is `{missing}`?"
    return f"it has no argument for `{missing}`"


def _refusal(function: Callable, given: Any, why: _Misfit) -> Wrong:
    """What to say about a signature that does not fit."""
    claim = "It cannot be called with the arguments that the problem names."
    advice = "Give it these; others need a default. Or hand in a small function that calls yours."
    method = getattr(function, "__func__", getattr(function, "__init__", None))
    code = getattr(method, "__code__", None)
    if code and code.co_argcount and code.co_varnames[0] != "self":
        advice = "The first parameter of each method is `self`: write it in the `def`."
    return Unfit(
        claim,
        given=given,
        got=Prose(f"the signature {inspect.signature(function)}: {why}"),
        mistake=advice,
    )
