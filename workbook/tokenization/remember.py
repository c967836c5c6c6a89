"""A memory for what a function returned for short strings.

memory = Memory(function, 2)
memory["one"]       calls function("one")
memory["one"]       looks it up, at the speed of a dictionary
"""

from collections.abc import Callable

LONGEST = 64  # characters of a string that is worth remembering


class Memory(dict):
    """string -> function(string), for at most `most` strings; a full memory starts again empty.

    Strings longer than `LONGEST` are not kept: they hardly ever come again, and a few thousand of
    them could fill the computer's memory. So 65,536 entries take some 20 MB.

    >>> memory = Memory(str.upper, 2)
    >>> [memory[name] for name in ("a", "b", "a", "c")], list(memory)
    (['A', 'B', 'A', 'C'], ['c'])
    """

    def __init__(self, function: Callable[[str], object], most: int):
        super().__init__()
        self.function, self.most = function, most

    def __missing__(self, string: str):
        result = self.function(string)
        if len(string) <= LONGEST:
            if len(self) >= self.most:
                self.clear()
            self[string] = result
        return result
