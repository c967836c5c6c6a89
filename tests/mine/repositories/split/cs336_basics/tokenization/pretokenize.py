import regex

GPT2_SPLIT = regex.compile(
    r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
)


def special_pattern(special_tokens):
    """Matches any of the special tokens, the longest first; None without any."""
    if not special_tokens:
        return None
    ordered = sorted(special_tokens, key=lambda token: -len(token))
    return regex.compile("(" + "|".join(map(regex.escape, ordered)) + ")")


def split_special(text, pattern):
    return pattern.split(text) if pattern else [text]


def pretokens(text):
    return GPT2_SPLIT.findall(text)


def byte_list(pretoken):
    return [bytes((b,)) for b in pretoken.encode()]


def merged(parts, pair):
    result = []
    waiting = iter(enumerate(parts))
    for i, part in waiting:
        if part == pair[0] and parts[i + 1 : i + 2] == [pair[1]]:
            result.append(part + pair[1])
            next(waiting)
        else:
            result.append(part)
    return result
