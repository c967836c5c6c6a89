"""A text as the tokens that a tokenizer makes of it: ids beside the bytes they stand for."""

from workbook.tokenization.tokenizer import ByteTokenizer, Encoder, Tokenizer


def pieces(tokenizer: Encoder, text: str) -> list[tuple[int, bytes]]:
    """Each token of a text: its id and its bytes, which may be a part of a character.

    >>> pieces(ByteTokenizer(), "é")
    [(195, b'\\xc3'), (169, b'\\xa9')]
    """
    return [(token_id, _token(tokenizer, token_id)) for token_id in tokenizer.encode(text)]


def _token(tokenizer: Encoder, token_id: int) -> bytes:
    """The bytes of a token; decoded alone, a part of a character would be lost."""
    if isinstance(tokenizer, Tokenizer):
        return tokenizer.vocab[token_id]
    if isinstance(tokenizer, ByteTokenizer):
        return bytes([token_id])
    return tokenizer.decode([token_id]).encode()
