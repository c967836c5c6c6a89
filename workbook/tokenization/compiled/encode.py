"""Text to ids: scan, look up each pre-token, and merge only the new ones.

    " the"     [ key | key | 262 ........................ 1 ]    a slot's ids, and their number
    " xylitol" [ key | key | 2124 2645 45 349 ........... 4 ]
    "=" * 20   [ key | key | place of bytes | place of ids 0 ]   or they are in the table's pool

A language uses few words again and again, so 99 in 100 pre-tokens are found, and encoding takes
little longer than scanning and looking up. Half a slot is copied to the output, however many ids it
holds: to ask would take longer, and the next pre-token's ids overwrite the excess. Memory is
bounded: a full table is emptied, and fills again with the words that the text uses from then on.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from workbook.tokenization.compiled import scan, table, text
from workbook.tokenization.compiled.kernels import INT, ROWS, compiled, kernel
from workbook.tokenization.compiled.machine import (
    PADDING,
    array_at,
    byte,
    store,
    text_address,
    word,
)

MOST_SLOTS = 1 << 20  # half a million pre-tokens remembered in 32 MB
MOST_BYTES = 1 << 26  # and 64 MB of long ones and of ids
# Up to 15 bytes of ids in a slot, where a short pre-token has no place, and the number of them.
IDS = table.PLACE
NUMBER_BITS = np.uint64(56)
# A pair in its table: the left symbol plus 1, as a free place is 0; the right one; and the one that
# they make. Each has 21 bits.
MOST_SYMBOLS = (1 << 21) - 1
SYMBOL_BITS = np.uint64(21)
SYMBOL_MASK = np.uint64(MOST_SYMBOLS)
NEVER = 1 << 30  # later than every merge
PLACE_BITS = 32  # of a symbol, below what it makes with the next one
PLACE_MASK = (1 << 32) - 1
FEW_BYTES = 1 << 21  # of texts that are encoded at the least price a call
FEW_CHARACTERS = FEW_BYTES // 4  # as one has up to four bytes
FEW_SYMBOLS = 24  # of a pre-token whose merges are found one by one
# What the kernel is told, in 64-bit numbers: an address in a text; where the first id is written,
# and the next one; a list of where texts end, in which it writes where their ids end, and the end
# of that list; and where to find all it needs. TEXT_END is the list of a single text. With an
# address of 0, the text is in the encoder's own memory, and its length stands for its end. The
# answer is the number of ids, or minus the length of a pre-token that found no room.
AT, FIRST, TO, ENDS, ENDS_STOP, TEXT_END, ANSWER, FEW, FEW_IDS = range(9)
SPECIAL, KINDS, BATCH, TABLE, PAIRS, IDS_OF, SCRATCH, SCRATCH_SIZE, WIDTH = range(9, 18)
PER_BYTE = 3 + 2  # numbers of scratch space for a byte that is merged: three lists, and a tree


class CompiledEncoder:
    """Merges and ids as arrays, and the table of what was encoded before.

    Symbols: 0 to 255 are bytes, 256 + k is what merge k makes. `merges` are pairs of symbols
    (n, 2), `ids` (256 + n) the id of each symbol, `special_ids` those of special tokens; `dtype`
    is uint16 or uint32. Only one thread may use it at a time.
    Raises: ValueError if these do not fit each other.
    """

    def __init__(
        self, merges: np.ndarray, ids: np.ndarray, special_ids: Mapping[str, int], dtype: np.dtype
    ) -> None:
        # The kernel reads them by address, eight bytes each: no other type or layout will do.
        self.ids = np.ascontiguousarray(ids, np.int64)
        self.dtype = dtype
        self.width = dtype.itemsize
        self.special = text.SpecialTokens(special_ids)
        self.check(merges)
        # The table of pairs begins with its capacity, so large that a search mostly ends at once.
        capacity = 1 << (4 * len(merges)).bit_length()
        self.pairs = np.zeros(1 + capacity, np.uint64)
        self.pairs[0] = capacity
        add_pairs(self.pairs.ctypes.data, merges)
        self.kinds = scan.character_kinds()
        self.batch = scan.new_batch()
        self.job = np.zeros(WIDTH + 1, np.int64)
        self.encode_on, _ = encode_on.prepared(self.job.ctypes.data)
        # Memory for short texts: their bytes, and their ids. Made once and used for all of them, as
        # to make it takes longer than to encode one.
        self.few = np.zeros(FEW_BYTES + PADDING, np.uint8)
        self.few_ids = np.empty(FEW_BYTES + 16, self.dtype)
        # Memory views: to set a single number of an array takes NumPy longer.
        self.views = self.few.data, self.job.data
        self.job[FEW:SPECIAL] = self.few.ctypes.data, self.few_ids.ctypes.data
        self.forget()

    def check(self, merges: np.ndarray) -> None:
        """Raise ValueError for numbers that would send compiled code to other memory."""
        symbols = len(self.ids)
        if symbols != 256 + len(merges):
            raise ValueError(f"256 bytes and {len(merges)} merges need an id each, got {symbols}")
        if symbols > MOST_SYMBOLS:
            raise ValueError(f"a pair has room for {MOST_SYMBOLS:,} symbols, got {symbols:,}")
        # Numbers from a file that somebody edited would otherwise be taken for addresses.
        if merges.min(initial=0) < 0 or merges.max(initial=0) >= symbols:
            raise ValueError(f"merges are pairs of the symbols 0 to {symbols - 1}")
        if self.dtype not in (np.uint16, np.uint32):
            raise ValueError(f"ids are uint16 or uint32, got {self.dtype}")
        every = np.concatenate([self.ids, self.special.ids])
        if every.min() < 0 or every.max() > np.iinfo(self.dtype).max:
            raise ValueError(
                f"ids from {every.min()} to {every.max()} do not fit into {self.dtype}"
            )

    def forget(self) -> None:
        """Empty the table."""
        self.table = table.PretokenTable()
        self.scratch = np.empty(PER_BYTE << 10, np.int64)
        self.point()

    def encode_file(self, path: Path, cuts: Sequence[int]) -> np.ndarray:
        """The ids of a file between the first of the cuts and the last."""
        return self.encode_spans(text.read_spans(path, cuts), cuts[-1] - cuts[0])

    def encode(self, string: str) -> np.ndarray:
        """The ids of a text. Raises: UnicodeEncodeError if it holds a lone surrogate."""
        if len(string) > FEW_CHARACTERS:
            data = text.utf8_of(string)
            return self.encode_spans(text.spans_of(data, self.special.tokens), len(data))
        # All that a short text does not need is left out, as it would take longer than its ids.
        encoded = string.encode()
        size = len(encoded)
        few, job = self.views
        few[:size] = encoded
        job[TEXT_END] = size
        self.encode_on()
        number = job[ANSWER]
        if number < 0:
            number = self.finish()
        return self.few_ids[:number].copy()

    def encode_spans(self, spans: Iterable[np.ndarray], most: int) -> np.ndarray:
        """The ids of spans that have together at most `most` bytes. Raises: ValueError for more."""
        # Room for an id per byte, as memory that is never written to costs nothing; and for the
        # excess behind the last ones.
        ids = np.empty(most + 16, self.dtype)
        to = ids.ctypes.data
        for span in spans:
            most -= len(span)
            if most < 0:
                raise ValueError(f"the spans are {-most} bytes longer than the room for their ids")
            # From here on addresses: the kernel writes ids and moves them on.
            start = text_address(span)
            to += self.width * self.run(start, np.array([start + len(span)]), to)
        # What was written is kept; the rest of the memory was never touched.
        ids.resize((to - ids.ctypes.data) // ids.itemsize, refcheck=False)
        return ids

    def encode_each(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray] | None:
        """The ids of all texts, in a row, and how many each of them has.

        None if they are together longer than the memory for short texts.
        Raises: UnicodeEncodeError if one holds a lone surrogate.
        """
        # Strings with a character for each byte, as ASCII has, which most texts are: to join these
        # is faster than to make bytes of every text.
        encoded = [one if one.isascii() else one.encode().decode("latin-1") for one in texts]
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        if lengths.sum() > FEW_BYTES:
            return None
        joined = "".join([*encoded, "\0" * PADDING]).encode("latin-1")
        start = text_address(np.frombuffer(joined, np.uint8)[:-PADDING])
        ends = start + lengths.cumsum()
        to = self.few_ids.ctypes.data
        ids = self.few_ids[: self.run(start, ends, to)].copy()
        # The ends are now those of each text's ids.
        return ids, np.diff((ends - to) // self.width, prepend=0)

    def run(self, start: int, ends: np.ndarray, to: int) -> int:
        """Write the ids of texts to an address; return how many there are.

        The first begins at `start`, each other one where the one before ends. `ends` are addresses,
        which the kernel replaces by those where the ids end.
        """
        at = ends.ctypes.data
        self.job[:TEXT_END] = start, to, to, at, at + ends.nbytes
        self.encode_on()
        return self.finish()

    def finish(self) -> int:
        """Make room as long as the kernel lacks some; return the number of ids in the end."""
        # The kernel goes on where it stopped, at a pre-token that found no room.
        while (number := int(self.job[ANSWER])) < 0:
            self.make_room(-number)
            self.encode_on()
        return number

    def make_room(self, length: int) -> None:
        """Enlarge the memory for a pre-token of this length; at the limit, empty the table."""
        many = self.table.is_full() and len(self.table.slots) >= MOST_SLOTS
        # Emptied as a whole: to find out which words are rare would need a count for each.
        if many or self.table.pool_used > MOST_BYTES:
            self.forget()
        self.table.grow(length)
        if PER_BYTE * length > len(self.scratch):
            self.scratch = np.empty(2 * PER_BYTE * length, np.int64)
        self.point()

    def point(self) -> None:
        """Tell the kernel where everything is."""
        # Arrays that have grown lie elsewhere now.
        held = self.kinds, self.batch, self.table.facts, self.pairs, self.ids, self.scratch
        addresses = [array.ctypes.data for array in held]
        self.job[SPECIAL:] = self.special.address, *addresses, len(self.scratch), self.width


def make_encoder(
    ids: Mapping[bytes, int],
    merges: Sequence[tuple[bytes, bytes]],
    special_ids: Mapping[str, int],
    dtype: np.dtype,
) -> CompiledEncoder | None:
    """The encoder of a vocabulary and merges; None if only the readable tokenizer can do it.

    That is so if some byte has no id, two merges make the same token, a merge joins a token that
    no merge makes, an id needs more than 32 bits, or there are two million tokens.
    """
    tokens = [bytes([value]) for value in range(256)] + [left + right for left, right in merges]
    # Symbols are numbered in the order of the merges: so the smallest symbol that a pair can make
    # is the merge that was learnt first, and no table of ranks is needed.
    symbols = {token: symbol for symbol, token in enumerate(tokens)}
    if len(symbols) < len(tokens) or len(tokens) > MOST_SYMBOLS or dtype.itemsize > 4:
        return None
    try:
        # A KeyError: a merge joins what no merge makes, or a token has no id. The readable
        # tokenizer does not mind.
        pairs = [symbols[part] for merge in merges for part in merge]
        symbol_ids = np.array([ids[token] for token in tokens], np.int64)
    except KeyError:
        return None
    return CompiledEncoder(np.array(pairs, np.int64).reshape(-1, 2), symbol_ids, special_ids, dtype)


@kernel(INT)
def encode_on(address):
    """Continue the job at an address, and write down there how far it came."""
    # By its address, as Python's call takes longer for each number that an array consists of.
    job = array_at(address, WIDTH + 1)
    if job[AT] == 0:
        job[AT] = job[FEW]
        job[FIRST] = job[FEW_IDS]
        job[TO] = job[FEW_IDS]
        job[TEXT_END] += job[FEW]
        job[ENDS] = address + 8 * TEXT_END
        job[ENDS_STOP] = job[ENDS] + 8
    at = job[AT]
    to = job[TO]
    facts = job[TABLE]
    width = job[WIDTH]
    lacking = 0
    # For the symbols of a pre-token that is merged, three lists and a tree.
    scratch = array_at(job[SCRATCH], job[SCRATCH_SIZE])
    while job[ENDS] < job[ENDS_STOP] and lacking == 0:
        text_end = np.int64(word(job[ENDS]))
        document_end, next_document, special_id = text.next_special(at, text_end, job[SPECIAL])
        while at < document_end and lacking == 0:
            batch = job[BATCH]
            number = table.next_batch(at, document_end, job[KINDS], facts, batch)
            item = batch
            stop = batch + scan.ITEM_BYTES * number
            while item < stop:
                # Nearly all are at home, with their ids: a loop that needs few variables.
                slot = table.slot_at_home(item)
                while slot != 0 and word(slot + table.VALUE) >> NUMBER_BITS != 0:
                    to = write_few(slot, width, to)
                    item += scan.ITEM_BYTES
                    if item == stop:
                        break
                    slot = table.slot_at_home(item)
                if item < stop:
                    start = np.int64(word(item))
                    item += scan.ITEM_BYTES
                    length = np.int64(word(item)) - start
                    # 0 is no address, so it stands for "none".
                    slot = 0
                    if PER_BYTE * length <= len(scratch):
                        slot = table.entry(facts, start, length)
                    if slot == 0:  # Python enlarges the memory, and calls again from here
                        lacking = length
                        at = start
                        break
                    # 0 is neither a number of ids nor a place in the pool, which begins at 8.
                    if word(slot + table.VALUE) == 0:  # a new one
                        if length <= FEW_SYMBOLS:
                            left = merge_few(start, length, job[PAIRS], job[SCRATCH])
                        else:
                            left = merge(start, length, job[PAIRS], scratch)
                        remember(facts, slot, left, job[IDS_OF], scratch, width)
                    to = write_ids(facts, slot, width, to)
            if lacking == 0:
                # The item behind the last one has the address where the batch ends.
                at = np.int64(word(stop))
        if lacking == 0:
            if special_id >= 0:
                store(to, np.uint64(special_id))
                to += width
            else:  # the end of a text
                store(job[ENDS], np.uint64(to))
                job[ENDS] += 8
            at = next_document
    job[AT] = at if lacking else 0
    job[TO] = to
    job[ANSWER] = -lacking if lacking else (to - job[FIRST]) // width


@compiled
def remember(facts, slot, number, ids, symbols, width):
    """Write the ids of a new pre-token's symbols to the pool; and if they fit, to its slot."""
    place = word(facts + table.POOL_USED)
    to = table.pooled(facts, place)
    # In the pool: the number of ids, then the ids, one behind the other.
    store(to, np.uint64(number))
    for index in range(number):
        # Eight bytes, of which the next id overwrites what is too much.
        store(to + 8 + width * index, word(ids + 8 * symbols[index]))
    # Up to 15 bytes fit into the slot beside their number, and the pool is not needed. A long
    # pre-token has its place in the pool where the ids would be.
    if width * number < 16 and word(slot + table.SECOND_KEY) < table.LONG_KEY:
        store(slot + IDS, word(to + 8))
        store(slot + table.VALUE, word(to + 16) | np.uint64(number) << NUMBER_BITS)
    else:
        store(slot + table.VALUE, place)
        store(facts + table.POOL_USED, place + np.uint64(8 + width * number))


@compiled
def write_few(slot, width, to):
    """Write the ids that are in a slot to an address; return the address behind them."""
    value = word(slot + table.VALUE)
    # 16 bytes are copied, whatever the number: two moves, and no branch to guess.
    store(to, word(slot + IDS))
    store(to + 8, value)
    return to + width * np.int64(value >> NUMBER_BITS)


@compiled
def write_ids(facts, slot, width, to):
    """Write the ids of a slot to an address; return the address behind them."""
    value = word(slot + table.VALUE)
    if value >> NUMBER_BITS > 0:
        return write_few(slot, width, to)
    source = table.pooled(facts, value)
    number = np.int64(word(source))
    for step in range(0, width * number, 8):
        store(to + step, word(source + 8 + step))
    return to + width * number


@compiled
def merge_few(at, length, pairs, symbols):
    """`merge` for a few bytes: to look at all of them is faster than a list and a tree.

    The first number at `symbols` is the first symbol; what each makes with the one before it has
    its place in a second row.
    """
    made = symbols + 8 * FEW_SYMBOLS
    store(symbols, np.uint64(byte(at)))
    for place in range(1, length):
        store(symbols + 8 * place, np.uint64(byte(at + place)))
        store(made + 8 * place, np.uint64(made_by_both(symbols + 8 * place, pairs)))
    while True:
        # The smallest symbol is the earliest merge; `<` takes the leftmost of equal ones.
        best = np.uint64(NEVER)
        right = 0
        for place in range(1, length):
            if word(made + 8 * place) < best:
                best = word(made + 8 * place)
                right = place
        if right == 0:
            return length
        length -= 1
        store(symbols + 8 * (right - 1), best)
        for place in range(right, length):  # those behind the right one move up
            store(symbols + 8 * place, word(symbols + 8 * (place + 1)))
            store(made + 8 * place, word(made + 8 * (place + 1)))
        # Two pairs are new: the merged symbol with the one before it, and with the one behind.
        for place in range(max(right - 1, 1), min(right + 1, length)):
            store(made + 8 * place, np.uint64(made_by_both(symbols + 8 * place, pairs)))


@compiled
def made_by_both(at, pairs):
    """What the symbol at an address and the one before it make."""
    return made_by(pairs, np.int64(word(at - 8)), np.int64(word(at)))


@compiled
def merge(at, length, pairs, scratch):
    """Merge the bytes at an address; return how many symbols are left, the first in `scratch`.

    The symbols are a list linked both ways. What each makes with the next is one number, (symbol,
    place), and the smallest of them the next merge: the earliest learnt, and of equal ones the
    leftmost. A tree finds it: `tree[1]` is the smaller of `tree[2]` and `tree[3]`, and so on to the
    leaves, `tree[length + place]`. So n bytes take n log n steps.
    """
    # Views of one array that is made beforehand: a kernel allocates nothing.
    symbols = scratch[:length]
    behind = scratch[length : 2 * length]
    ahead = scratch[2 * length : 3 * length]
    tree = scratch[3 * length :]
    for place in range(length):
        symbols[place] = byte(at + place)
        behind[place] = place - 1
        ahead[place] = place + 1
    for place in range(length):
        tree[length + place] = merge_at(place, symbols, ahead, pairs)
    # From the leaves upwards, each node the smaller of its two children.
    for node in range(length - 1, 0, -1):
        tree[node] = min(tree[2 * node], tree[2 * node + 1])
    while tree[1] >> PLACE_BITS < NEVER:
        # The new symbol stands at the place of the left one; the right one leaves the list.
        place = tree[1] & PLACE_MASK
        gone = ahead[place]
        symbols[place] = tree[1] >> PLACE_BITS
        ahead[place] = ahead[gone]
        if ahead[place] < length:
            behind[ahead[place]] = place
        set_leaf(tree, length + gone, NEVER << PLACE_BITS)
        set_leaf(tree, length + place, merge_at(place, symbols, ahead, pairs))
        if place > 0:
            left = behind[place]
            set_leaf(tree, length + left, merge_at(left, symbols, ahead, pairs))
    place, number = 0, 0  # close the gaps, so that the symbols that are left stand in a row
    while place < length:
        symbols[number] = symbols[place]
        place = ahead[place]
        number = number + 1
    return number


@compiled
def merge_at(place, symbols, ahead, pairs):
    """What the symbol at a place makes with the next one, and the place, in one number."""
    made = NEVER
    if ahead[place] < len(symbols):
        made = made_by(pairs, symbols[place], symbols[ahead[place]])
    # One number that is compared as a whole: first the merge, then the place.
    return made << PLACE_BITS | place


@compiled
def set_leaf(tree, node, value):
    """Change a leaf of a tree of minima."""
    tree[node] = value
    while node > 1:
        # `node ^ 1` is the sibling: children are numbered 2n and 2n + 1.
        value = min(value, tree[node ^ 1])
        node >>= 1
        tree[node] = value


@compiled
def made_by(pairs, left, right):
    """The symbol that a pair makes; `NEVER` if no merge joins it."""
    value = word(place_of_pair(pairs, left, right))
    return np.int64(value & SYMBOL_MASK) if value != 0 else NEVER


@compiled
def place_of_pair(pairs, left, right):
    """The address of a pair in their table: its own, or the free one where it belongs."""
    # Never 0, which stands for a free place.
    key = np.uint64(left + 1) << SYMBOL_BITS | np.uint64(right)
    last = word(pairs) - table.ONE
    # Multiplicative hashing: the upper bits of the product depend on all bits of the key.
    index = key * table.MIX_A >> np.uint64(32)
    while True:
        place = pairs + 8 + 8 * np.int64(index & last)
        pair = word(place) >> SYMBOL_BITS
        # Free, or the key's: in one question, whose answer the processor can nearly always guess.
        if min(pair, pair ^ key) == 0:
            return place
        index += table.ONE


@kernel(INT, ROWS)
def add_pairs(pairs, merges):
    """Enter the pair of each merge, with the symbol that it makes."""
    for index in range(len(merges)):
        left = merges[index, 0]
        right = merges[index, 1]
        # Key and result in one word, so that one load answers.
        value = (left + 1 << 21 | right) << 21 | 256 + index
        store(place_of_pair(pairs, left, right), np.uint64(value))
