"""The grammar's text files, read and compiled to nodes.

The language of `texts/*.txt`:

    colour = red, blue, green     a list, the most frequent first (weights fall by Zipf's law)
    gift/gifts = kite/kites       a list whose items have several forms
    hello:                        a rule: the indented lines below are written one after another
        One line of text.
        | One form of a line      (lines that begin with | are forms of one line)
        | or another.

        ? Perhaps this line.      (written half of the time; of several, one or none)
        --                        (a new paragraph; a line indented deeper continues one)
    plot rain:                    a rule that tells a whole story
    rain.wet:                     a rule of that plot, which can call it as <.wet>

Inside any text:

    [big|small|]          one of these, or nothing; the weights fall as in a list
    <colour>              an item drawn anew, or what a rule writes
    {colour} {colour2}    an item drawn once and then remembered; another item, never the same
    {gift=kite}           remember this item, write nothing
    <hello.{colour}>      the rule of that name
    {Gift} <Colour>       the same with a capital letter
    said*5                five times the weight (at the end of an item)
    a_                    "a " or "an "
    @tom glad: Hello. / How are you? @@
                          speech: who, in what mood, what; "said Tom" may come at the slash

A name that is not defined is tried with the story's world behind it: `snack` means `snack.woods`
in the woods, else `snack.animals` (unless people live there), else `snack.all`.
"""

import re
from functools import cached_property
from typing import Any

import regex

from workbook.corpora.stories.draws import zipf_weights
from workbook.corpora.stories.nodes import (
    CAPITAL,
    PARAGRAPH,
    Assign,
    Choice,
    Find,
    Node,
    Series,
    Slot,
    Story,
    WordForm,
    WordList,
)

SPEECH = re.compile(r"@(\w+)(?: (\w+))?: (.*?) *(?:@@|(?=@\w)|$)")
# A choice, which may hold others (`(?1)`), a slot, a call, or the text between them.
PIECE = regex.compile(r"(\[(?:[^][]|(?1))*\])|\{[^}]*\}|<[^>]*>|[^][{<]+")
WEIGHT = re.compile(r"\*(\d+)$")
VERBS = {".": "said", "!": "cried", "?": "asked"}


class Grammar:
    """Lists and rules by name; each is compiled when a story first needs it."""

    def __init__(self, *sources: str) -> None:
        self.plots: list[str] = []
        self.lists: dict[str, tuple[str, list[str]]] = {}  # form: (all forms of the list, lines)
        self.rules: dict[str, list[str]] = {}
        self._nodes: dict[str, Node | str] = {}
        self._words: dict[str, WordList] = {}
        self._plot = ""  # the plot that <.name> belongs to now
        for source in sources:
            self._read(source)

    def find(self, name: str, story: Story) -> Node | str:
        """The node of a name, in the world of a story."""
        node = self._nodes.get(name)
        if node is not None:
            return node
        if not self._known(name):
            world = story.values.get("world") or story.remember("world")
            places = (world, "all") if world == "people" else (world, "animals", "all")
            full = (f"{name}.{place}" for place in places)
            name = next((name for name in full if self._known(name)), name)
        return self.node(name)

    def node(self, name: str) -> Node | str:
        """The node of a list or rule, compiled on the first call."""
        if name not in self._nodes:
            assert self._known(name), f"the grammar has no list or rule {name!r}; define it"
            make = self._compile_rule if name in self.rules else self._compile_list
            self._nodes[name] = make(name)
        return self._nodes[name]

    @cached_property
    def any_plot(self) -> Choice:
        """A choice among all plots, each equally probable."""
        return Choice([Find(plot, None) for plot in self.plots], [1] * len(self.plots))

    # --- Reading --------------------------------------------------------------------------------

    def _read(self, source: str) -> None:
        lines: list[str] = []
        for line in source.splitlines():
            if line[:1].isspace() or not line:
                lines.append(line)
            elif line.startswith("#"):
                continue
            elif " =" in line:
                head, _, items = line.partition(" =")
                lines = [items]
                for name in self._forms(head):
                    self._define(self.lists, name, (head, lines))
            else:
                kind, _, name = line.removesuffix(":").rpartition(" ")
                lines = []
                self._define(self.rules, name, lines)
                if kind == "plot":
                    self.plots.append(name)

    def _define(self, where: dict[str, Any], name: str, value: object) -> None:
        assert not self._known(name), f"{name} is defined twice in the grammar; rename one"
        where[name] = value

    @staticmethod
    def _forms(head: str) -> list[str]:
        """The full names of a list's forms: name/he.people -> name.people, he.people."""
        names, dot, world = head.partition(".")
        return [name + dot + world for name in names.split("/")]

    # --- Compiling ------------------------------------------------------------------------------

    def _compile_list(self, name: str) -> Node | str:
        """A list of plain words, kept with all their forms, or else a choice of texts."""
        head, lines = self.lists[name]
        text = " ".join(line.strip() for line in lines)
        items = [item.strip() for item in split_outside_brackets(text, ",")]
        if any(mark in item for item in items for mark in "{[<"):
            return self._choice(items)
        if head not in self._words:
            items, weights = weigh_items(items)
            forms = tuple(head.partition(".")[0].split("/"))
            entries = [tuple(item.split("/")) for item in items]
            assert {*map(len, entries)} == {len(forms)}, f"an item of {head} lacks a form"
            self._words[head] = WordList(forms, entries, weights)
        return WordForm(self._words[head], self._forms(head).index(name))

    def _compile_rule(self, name: str) -> Node | str:
        outer = self._plot
        self._plot = name.partition(".")[0]
        parts: list[Node | str] = []
        for mark, texts in group_lines(self.rules[name]):
            if mark == "--":
                parts.append(PARAGRAPH)
            elif mark == "?":
                texts, weights = weigh_items([f"{text} " for text in texts])
                parts.append(self._pick(["", *texts], [sum(weights), *weights]))
            else:
                parts += [self._choice(texts), " "]
        self._plot = outer
        return _join(parts)

    def _choice(self, texts: list[str]) -> Node | str:
        return self._pick(*weigh_items(texts))

    def _pick(self, texts: list[str], weights: list[int]) -> Node | str:
        nodes = [self.parse(text) for text in texts]
        return nodes[0] if len(nodes) == 1 else Choice(nodes, weights)

    def parse(self, text: str) -> Node | str:
        """The node of a text with marks."""
        end = 0
        parts: list[Node | str] = []
        for speech in SPEECH.finditer(text):
            parts += [self._parse(text[end : speech.start()]), self._speech(*speech.groups()), " "]
            end = speech.end()
        return _join([*parts, self._parse(text[end:])])

    def _parse(self, text: str) -> Node | str:
        parts: list[Node | str] = []
        for piece in cut_at_marks(text):
            mark = piece[:1]
            if mark == "[":
                parts.append(self._pick(*weigh_items(split_outside_brackets(piece[1:-1], "|"))))
            elif mark == "{":
                parts.append(self._slot(piece[1:-1]))
            elif mark == "<":
                parts.append(self._call(piece[1:-1]))
            else:
                parts.append(piece)
        return _join(parts)

    @staticmethod
    def _slot(text: str) -> Node:
        key, equals, value = text.partition("=")
        if equals:
            return Assign(key, value)
        slot = Slot(key[0].lower() + key[1:])
        return Series([CAPITAL, slot]) if key[0].isupper() else slot

    def _call(self, text: str) -> Node | str:
        name, brace, slot = text.partition("{")
        if name.startswith("."):
            name = self._plot + name
        if name[0].isupper():
            return Series([CAPITAL, self._call(text[0].lower() + text[1:])])
        if brace:
            return Find(name, slot.removesuffix("}"))
        return self.node(name) if self._known(name) else Find(name, None)

    def _speech(self, who: str, mood: str | None, text: str) -> Node | str:
        """All the ways to write that somebody says a text, as a choice."""
        first, _, rest = text.partition(" / ")
        mark = first[-1]
        assert mark in VERBS, f"speech must end with one of . ! ? before a slash: {text!r}"
        verb = f"{VERBS[mark]}.{mood}"
        verb = f"<{verb if self._known(verb) else VERBS[mark]}>"
        manner = f"[| <manner.{mood}>]" if self._known(f"manner.{mood}") else ""
        start = first[:-1] + "," if mark == "." else first
        more = f' "{rest}"' if rest else ""
        whole = f"{first} {rest}" if rest else first
        low = f"{{{who}}}"
        high = f"{{{who[0].upper()}{who[1:]}}}"
        shapes = [f'{high} {verb}{manner}, "{whole}"', f'"{start}" {low} {verb}{manner}.{more}']
        if not who.rstrip("123").endswith("he"):  # nobody writes: said she
            shapes.insert(0, f'"{start}" {verb} {low}{manner}.{more}')
        if self._known(f"act.{mood}"):
            shapes.append(f'{high} <act.{mood}>. "{whole}"')
        return self._choice(shapes)

    def _known(self, name: str) -> bool:
        return name in self.rules or name in self.lists


def _join(parts: list[Node | str]) -> Node | str:
    """One node for several: inner series are opened, neighbouring texts joined."""
    joined: list[Node | str] = []
    for part in parts:
        for inner in part.parts if isinstance(part, Series) else [part]:
            if isinstance(inner, str) and joined and isinstance(joined[-1], str):
                joined[-1] += inner
            elif inner != "":
                joined.append(inner)
    if not joined:
        return ""
    return joined[0] if len(joined) == 1 else Series(joined)


# --- Cutting up: lines into groups, a text at its marks, a list into items -----------------------


def group_lines(lines: list[str]) -> list[tuple[str, list[str]]]:
    """The lines of a rule, grouped: (mark, forms), where the mark is "|", "?", "--" or empty.

    Neighbouring lines with the same mark are forms of one line; a blank line separates them.
    """
    groups: list[tuple[str, list[str]]] = []
    depth, last = None, ""  # the rule's indentation; the previous line's mark
    for line in lines:
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        if not text:
            last = ""
            continue
        depth = depth or indent
        if indent > depth:  # it continues the line before
            groups[-1][1][-1] += " " + text
            continue
        mark = ""
        if text == "--":
            mark = text
        elif text.startswith(("| ", "? ")):
            mark = text[0]
        text = text.removeprefix(mark).strip()
        if mark and mark == last:
            groups[-1][1].append(text)
        else:
            groups.append((mark, [text]))
        last = mark
    return groups


def cut_at_marks(text: str) -> list[str]:
    """A text cut into [choices], {slots}, <calls> and what lies between them.

    >>> cut_at_marks("a_[big|[very |]small] {pet} ran.")
    ['a_', '[big|[very |]small]', ' ', '{pet}', ' ran.']
    """
    pieces = [match[0] for match in PIECE.finditer(text)]
    assert "".join(pieces) == text, f"unbalanced brackets in {text!r}"
    return pieces


def split_outside_brackets(text: str, mark: str) -> list[str]:
    """A text cut at a mark, but not inside brackets.

    >>> split_outside_brackets("a|[b|c]|", "|")
    ['a', '[b|c]', '']
    """
    parts = [""]
    depth = 0
    for char in text:
        depth += (char == "[") - (char == "]")
        if char == mark and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def weigh_items(items: list[str]) -> tuple[list[str], list[int]]:
    """Items without their *5, and their weights; those of a repeated item are added up."""
    weights: dict[str, int] = {}
    for item, weight in zip(items, zipf_weights(len(items)), strict=True):
        factor = WEIGHT.search(item)
        item = WEIGHT.sub("", item)
        weights[item] = weights.get(item, 0) + weight * int(factor[1] if factor else 1)
    return list(weights), list(weights.values())
