import csv

import numpy
import pytest

from workbook import config
from workbook.checks.encodings import unicode2
from workbook.checks.verdicts import Wrong
from workbook.study.verbs import check

NUL = "\x00"


def status(problem, attempt, part):
    return check(problem, attempt, part).status


@pytest.mark.parametrize(
    "attempt",
    [
        NUL,
        0,
        "NUL",
        "null",
        "U+0000",
        r"\x00",
        "the null character",
        "It is U+0000, called NUL.",
        "chr(0) is the null character, not the empty string and not b'\\x00'.",
        "a NUL byte",
        "the character with code point 0",
        numpy.int64(0),
        "␀",
        "0x00",
        "0x0",
        "U+0",
        "the zero character",
        "It is the null character, character 0.",
    ],
)
def test_the_character_may_be_named_in_many_ways(attempt):
    assert status("unicode1", attempt, "a") == "correct"


@pytest.mark.parametrize(
    ("attempt", "mistake"),
    [
        ("chr(0) returns 'b'\\x00''", "repr of bytes for the repr of a str"),
        ("b'\\x00'", "repr of bytes for the repr of a str"),
        (b"\x00", "A str holds code points"),
        ("0", "chr(48) is the digit"),
        (48, "chr(48) is the digit"),
        (r"\x30", "chr(48) is the digit"),
        ("It is the digit zero.", "chr(48) is the digit"),
        ("", "of length 1"),
        ("It returns an empty string.", "of length 1"),
        (" ", "ord(chr(0))"),
        ("It gives a space", "ord(chr(0))"),
        (1, "ord(chr(0))"),
        ("a", "ord(chr(0))"),
        ("U+0041", "'A'"),
        ("0x30", "chr(48) is the digit"),
        ("None", "not None"),
        ("banana", "does not name the character"),
    ],
)
def test_another_character_is_refused_with_the_slip(attempt, mistake):
    report = check("unicode1", attempt, "a")
    assert report.status == "wrong" and mistake in report.message, report


@pytest.mark.parametrize("attempt", [repr(NUL), r"\x00", NUL, 6, 1, (repr(NUL), NUL)])
def test_the_repr_and_what_is_printed_are_recognised(attempt):
    assert status("unicode1", attempt, "b") == "correct"


@pytest.mark.parametrize(
    "attempt",
    [
        r"The repr shows '\x00', printing shows nothing visible.",
        "Its representation is an escape sequence, while print writes an invisible character.",
        "repr gives the escape; what is printed cannot be seen, but it is not an empty string",
    ],
)
def test_a_right_comparison_is_read_and_facts_are_offered(attempt):
    report = check("unicode1", attempt, "b")
    assert report.status == "read" and 2 <= len(report.facts) <= 4
    assert report.message.count("[ ]") == len(report.facts)


@pytest.mark.parametrize(
    ("attempt", "mistake"),
    [
        ("printed it is an empty character", "of length 1"),
        ("", "of length 1"),
        (0, "of length 1"),
        ("print(chr(0)) prints nothing", "of length 1"),
        ("When printed it shows a space.", "ord(chr(0))"),
        ("repr gives b'\\x00'", "repr of bytes"),
        ("they are the same", "len(repr(chr(0)))"),
        (r"print shows \x00 and repr shows nothing", "`repr`"),
        ((repr(NUL), ""), "of length 1"),
    ],
)
def test_a_wrong_comparison_is_named(attempt, mistake):
    report = check("unicode1", attempt, "b")
    assert report.status == "wrong" and mistake in report.message, report


@pytest.mark.parametrize("attempt", ["before\x00after", "this is a test\x00string", 12, 21, "a\0b"])
def test_the_text_with_nul_inside_is_recognised(attempt):
    assert status("unicode1", attempt, "c") == "correct"


@pytest.mark.parametrize(
    "attempt",
    [
        r"In the repr it appears as \x00; printed, it is invisible, yet counted in the length.",
        "It stays in the text, although nothing is seen. In C it would end the string.",
        "The character is there but not visible.",
    ],
)
def test_a_right_description_of_nul_inside_is_read(attempt):
    assert status("unicode1", attempt, "c") == "read"


@pytest.mark.parametrize(
    ("attempt", "mistake"),
    [
        ("beforeafter", "it stays in the text"),
        (11, "NUL was not counted"),
        (20, "NUL was not counted"),
        ("It terminates the string.", "NUL ends a string in C"),
        ("the text ends there", "NUL ends a string in C"),
        ("The character is removed when it is printed.", "the length counts it"),
    ],
)
def test_a_wrong_description_of_nul_inside_is_named(attempt, mistake):
    report = check("unicode1", attempt, "c")
    assert report.status == "wrong" and mistake in report.message, report


@pytest.mark.parametrize(
    "attempt",
    [
        24,
        12,
        5,
        [5, 12, 24],
        {"utf-8": 5, "utf-16": 12, "utf-32": 24},
        256,
        10,
        20,
        [5, 10, 20],
        {"UTF-32": 20},
        "'hello' is 5 bytes in UTF-8, 12 in UTF-16 and 24 in UTF-32.",
        "hello is 5 bytes in UTF-8, 10 in UTF-16 and 20 in UTF-32",
        "'hello' in UTF-32 is 20 bytes",
        "hello: 12 bytes in UTF-16 with BOM, 20 bytes in UTF-32-LE",
        "hello: UTF-32 24 bytes",
        "'hello' takes 20 bytes in UTF-32-LE",
        "'hello' is 20 bytes in UTF-32 without its BOM",
        "'né' is 3 bytes in UTF-8 and 6 in UTF-16",
    ],
)
def test_right_sizes_are_recognised(attempt):
    assert status("unicode2", attempt, "a") == "correct"


@pytest.mark.parametrize(
    ("attempt", "mistake"),
    [
        ("'hello' is 12 bytes in UTF-16 and 20 in UTF-32", "writes 4 bytes in front"),
        ({"UTF-16": 10, "UTF-32": 24}, "byte order mark (BOM) was forgotten"),
        ("'hello'.encode('utf-16') is 10 bytes in UTF-16", "writes 2 bytes in front"),
        ("hello is 11 bytes in UTF-16", "not the size in UTF-16"),
        ("'né' is 2 bytes in UTF-8", "Characters were counted"),
        (2**32, "the range of a 32-bit integer"),
        ("UTF-32 would need a vocabulary of about 4 billion", "the range of a 32-bit integer"),
        ("UTF-16 always takes two bytes a character", "2 or 4 bytes"),
        ("UTF-8 uses 1 to 6 bytes a character", "given up in 2003"),
        ("UTF-8 has fixed width", "UTF-8 has no fixed width"),
        ("UTF-8 is always shorter than UTF-16.", "'日'"),
    ],
)
def test_wrong_sizes_are_refused_with_the_slip(attempt, mistake):
    report = check("unicode2", attempt, "a")
    assert report.status == "wrong" and mistake in report.message, report


@pytest.mark.parametrize(
    "attempt",
    [
        "UTF-16 always needs at least 2 bytes a character, and most text on the web is ASCII.",
        "UTF-8 is shorter for English; UTF-16 and UTF-32 pad with zeros that teach nothing.",
        "UTF-8 is always shorter than UTF-16 for English text",
        "Unlike UTF-32, UTF-8 has no fixed width.",
        "Bytes of UTF-8 give 256 values and no unknown token. A vocabulary of 4 billion is not"
        " needed for UTF-32 either, since code points end at 0x10FFFF.",
    ],
)
def test_reasons_for_utf8_are_read(attempt):
    assert status("unicode2", attempt, "a") == "read"


@pytest.mark.parametrize(
    "attempt",
    [
        "é".encode(),
        bytearray("日".encode()),
        "ü",
        "hello 🙂",
        r"b'\xc3\xa9'",
        "c3 a9",
        ("é".encode(), "because it is two bytes"),
        "the euro sign: '€'",
    ],
)
def test_an_example_that_breaks_the_byte_by_byte_decoder_is_right(attempt):
    report = check("unicode2", attempt, "b")
    assert report.status == "correct" and "takes" in report.message, report


@pytest.mark.parametrize(
    ("attempt", "mistake"),
    [
        (b"hello", "All of it is ASCII"),
        ("hello", "All of it is ASCII"),
        ("b'abc' fails when its bytes are decoded one by one", "All of it is ASCII"),
        (b"\xff", "FF never occurs in UTF-8"),
        (b"\xc3", "only 1 is there"),
        (b"", "On no bytes at all"),
        (3.5, "bytes, such as a text's .encode()"),
    ],
)
def test_an_example_that_breaks_nothing_is_refused(attempt, mistake):
    report = check("unicode2", attempt, "b")
    assert report.status == "wrong" and mistake in report.message, report


@pytest.mark.parametrize(
    ("attempt", "rule"),
    [
        (b"\xbf\xcf", "BF is a continuation byte"),
        (b"\xc3\x28", "28 is no continuation byte"),
        (b"\xc0\x20", "C0 never occurs"),
        ([0xAA, 0xAA], "AA is a continuation byte"),
        ((0xFF, 0x20), "FF never occurs"),
        ("e2 82", "only 2 are there"),
        (r"b'\xc3('", "28 is no continuation byte"),
        ("0xC3 0x28 cannot be decoded", "28 is no continuation byte"),
        (bytearray(b"\xed\xa0"), "belong to UTF-16"),
        ([b"\x80", b"\x80"], "80 is a continuation byte"),
    ],
)
def test_two_bytes_that_decode_to_nothing_are_right_and_told_why(attempt, rule):
    report = check("unicode2", attempt, "c")
    assert report.status == "correct" and rule in report.message, report


@pytest.mark.parametrize(
    ("attempt", "mistake"),
    [
        (b"\xc3\xa9", "C3 begins a character of two bytes, and A9 continues it"),
        (b"hi", "each a character of its own"),
        ("c3 a9 decodes to nothing", "U+00E9"),
        (b"\xff", "Exactly two bytes"),
        (b"\xff\xff\xff", "Exactly two bytes"),
        ([0, 256], "from 0 to 255"),
        ("Ã(", "A str is decoded already"),
        (7, "two bytes, such as"),
    ],
)
def test_other_bytes_are_refused_with_the_reason(attempt, mistake):
    report = check("unicode2", attempt, "c")
    assert report.status == "wrong" and mistake in report.message, report


def test_every_pair_is_judged_as_python_decodes_it():
    for number in range(0, 65_536, 7):
        pair = number.to_bytes(2, "big")
        try:
            pair.decode()
        except UnicodeDecodeError:
            assert unicode2(pair, "c"), pair
        else:
            with pytest.raises(Wrong, match="valid"):
                unicode2(pair, "c")


@pytest.mark.parametrize("problem", ["unicode1", "unicode2"])
@pytest.mark.parametrize("part", "abc")
@pytest.mark.parametrize("nothing", [None, ..., "\n"])
def test_an_empty_cell_is_not_attempted(problem, part, nothing):
    assert status(problem, nothing, part) == "not attempted"


def test_without_a_part_the_fitting_one_is_found():
    assert check("unicode2", b"\xc3\x28").part == "c"
    assert check("unicode2", "é".encode()).part == "b"
    assert check("unicode2", 20).part == "a"
    assert check("unicode1", NUL).part == "a"


def published_claims(problem):
    path = config.repository() / "data" / "reported" / "claims.csv"
    with open(path, encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["problem"] == problem]


@pytest.mark.parametrize("problem", ["unicode1", "unicode2"])
def test_what_write_ups_claimed_is_judged_as_recorded(problem):
    for row in published_claims(problem):
        claimed = row["claimed"]
        if claimed == "'hello' in UTF-32 is 20 bytes":  # wrong only beside what else it claims
            claimed += ". 'hello' in UTF-16 is 12 bytes"
        found = status(problem, claimed, row["part"])
        assert (found == "wrong") == (row["verdict"] == "wrong"), row
