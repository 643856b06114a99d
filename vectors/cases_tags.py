"""The tag algebra: membership, intersection, and what is no tag."""

from __future__ import annotations

from builders import Case, case

ABOUT = "Tags (RFC 2693, section 6.3) with Maia's globs, pieces, decimal ranges, row constraints and bounds."


def cases() -> list[Case]:
    """List the cases."""
    return [
        *(_permits(says, tag, request, answer=True) for says, tag, request in PERMITTED),
        *(_permits(says, tag, request, answer=False) for says, tag, request in FORBIDDEN),
        *(
            case(says, "tag.intersect", {"a": a, "b": b}, {"tag": both}, must_fail=both == NOTHING)
            for says, a, b, both in INTERSECTIONS
        ),
        *(case(says, "tag.parse", {"tag": tag}, {"tag": normal}) for says, tag, normal in NORMAL),
        *(case(says, "tag.parse", {"tag": tag}, {"error": code}) for says, tag, code in MALFORMED),
    ]


def _permits(says: str, tag: str, request: str, *, answer: bool) -> Case:
    return case(says, "tag.permits", {"tag": tag, "request": request}, {"permits": answer}, must_fail=not answer)


NOTHING = "(* set)"
CHEAP = '("2" integer (* range numeric l "100"))'
"""One constraint of a bound: the attribute 2 is below 100."""
PERMITTED = [
    ("everything permits a string", "(*)", "a"),
    ("everything permits a list", "(*)", "(a b)"),
    ("a shorter list permits a longer request", "(ftp)", "(ftp host read)"),
    ("a member of a set", "(ftp (* set read write))", "(ftp read)"),
    ("a prefix", "(* prefix /pub/)", "/pub/cme"),
    ("a numeric range, by value", "(* range numeric ge #38# le #3130#)", '"009"'),
    ("a signed number", '(* range numeric ge "-5" l "0")', '"-1"'),
    ("a time of day", '(* range time ge "09:00" l "17:30")', '"17:29:59"'),
    ("a date", '(* range date ge "2026-06" l "2026-07")', '"2026-06-30_23:59:59"'),
    ("binary compares by value", "(* range binary ge #01# le #0100#)", "#0000ff#"),
    ("a decimal", '(* range decimal g "3.4" l "3.6")', '"3.50"'),
    ("a glob", '(* glob "Test*Type")', "TestNumberplateType"),
    (
        "a row that meets each demand",
        '(* where ("7" (* range numeric l "5")) ("8" a))',
        '(row ("7" "4") ("8" a) ("9" b))',
    ),
    ("a row within an upper bound", f"(* bound (upper {CHEAP}))", '(row ("2" "10") ("3" red))'),
    ("a lower bound leaves other attributes free", f"(* bound (lower {CHEAP}))", '(row ("2" "10") ("3" red))'),
    ("a row within a strict lower bound", f"(* bound (strict-lower {CHEAP}))", '(row ("2" "10"))'),
    (
        "a filter within an upper bound",
        f"(* bound (upper {CHEAP}))",
        '(filter "(7:entries(1:27:integer(1:*5:range7:numeric2:ge1:72:le1:7)))")',
    ),
    ("a filter that names nothing, within a lower bound", f"(* bound (lower {CHEAP}))", '(filter "(7:entries)")'),
]
FORBIDDEN = [
    ("a longer list does not permit a shorter request", "(ftp host)", "(ftp)"),
    ("a string is not a list of it", "a", "(a)"),
    ("a display hint counts", "a", "[text]a"),
    ("the empty set permits nothing", "(* set)", "a"),
    ("a string is no prefix of its prefix", "(* prefix /pub/)", "/pub"),
    ("letters are no number", '(* range numeric ge "1")', "abc"),
    ("a fraction is no integer", '(* range numeric ge "1")', '"1.5"'),
    ("an open end is outside", '(* range numeric l "10")', '"10"'),
    ("text order is not number order", '(* range alpha ge "10")', '"1"'),
    ("no time of day", '(* range time ge "00")', '"24:00"'),
    ("no date on the calendar", '(* range date ge "2000")', '"2026-02-30"'),
    ("the pieces of a glob may not overlap", '(* glob "ab*ba")', "aba"),
    ("a glob is whole, not a part", '(* glob "a*b")', "xab"),
    ("a row without the attribute", '(* where ("7" (*)))', '(row ("8" a))'),
    ("a value outside the demand", '(* where ("7" (* range numeric l "5")))', '(row ("7" "5"))'),
    ("a list that is no row", '(* where ("7" (*)))', '(line ("7" a))'),
    ("a row outside an upper bound", f"(* bound (upper {CHEAP}))", '(row ("2" "100"))'),
    ("a row without what an upper bound asks for", f"(* bound (upper {CHEAP}))", '(row ("3" red))'),
    ("a strict upper bound and another attribute", f"(* bound (strict-upper {CHEAP}))", '(row ("2" "1") ("3" red))'),
    ("a lower bound of which nothing is there", f"(* bound (lower {CHEAP}))", '(row ("3" red))'),
    ("a filter that names nothing, under an upper bound", f"(* bound (upper {CHEAP}))", '(filter "(7:entries)")'),
    ("a filter of another type", f"(* bound (upper {CHEAP}))", '(filter "(7:entries(1:26:string1:7))")'),
    ("one of two bounds is not met", f'(* bound (lower {CHEAP}) (upper ("1" string a)))', '(row ("2" "10"))'),
    ("a use that is neither row nor filter", f"(* bound (upper {CHEAP}))", '(line ("2" "10"))'),
]
INTERSECTIONS = [
    ("everything is neutral", "(*)", "(ftp read)", "(ftp read)"),
    (
        "lists element by element, the longer one's rest",
        "(ftp (* prefix a))",
        "(ftp (* set ab b) read)",
        "(ftp ab read)",
    ),
    ("sets meet in their common members", "(* set a b c)", "(* set b c d)", "(* set b c)"),
    ("two prefixes leave the longer", "(* prefix a)", "(* prefix ab)", "(* prefix ab)"),
    (
        "two ranges leave the tighter ends",
        '(* range numeric ge "1" le "9")',
        '(* range numeric g "1" le "20")',
        '(* range numeric g "1" le "9")',
    ),
    ("a set and a range", '(* set "1" "5" "50")', '(* range numeric le "10")', '(* set "1" "5")'),
    ("a glob inside a glob", '(* glob "a*c")', '(* glob "ab*bc")', "(* glob ab*bc)"),
    ("demands on rows add up", '(* where ("1" a))', '(* where ("2" b))', '(* where ("1" a) ("2" b))'),
    (
        "bounds hold together",
        f"(* bound (upper {CHEAP}))",
        '(* bound (lower ("1" string a)))',
        f'(* bound (lower ("1" string a)) (upper {CHEAP}))',
    ),
    ("a bound and itself", f"(* bound (upper {CHEAP}))", f"(* bound (upper {CHEAP}))", f"(* bound (upper {CHEAP}))"),
    ("a bound and the row that it allows", f"(* bound (upper {CHEAP}))", '(row ("2" "10"))', '(row ("2" "10"))'),
    ("a bound and a row that it does not", f"(* bound (upper {CHEAP}))", '(row ("2" "523"))', NOTHING),
    ("manage covers its parts", "(t (manage))", "(t (manage addAttribute))", "(t (manage addAttribute))"),
    ("different strings", "a", "b", NOTHING),
    ("a string and a list", "a", "(a)", NOTHING),
    ("disjoint sets", "(* set a b)", "(* set c d)", NOTHING),
    ("prefixes that part", "(* prefix a)", "(* prefix b)", NOTHING),
    ("ranges that touch at an open end", '(* range numeric l "5")', '(* range numeric ge "5")', NOTHING),
    ("no whole number between neighbours", '(* range numeric g "5")', '(* range numeric l "6")', NOTHING),
    ("a glob and an alpha range apart", '(* glob "b*")', '(* range alpha l "b")', NOTHING),
    ("globs with different ends", '(* glob "*a")', '(* glob "*b")', NOTHING),
    ("one empty element empties the list", "(ftp a b)", "(ftp a c)", NOTHING),
    ("one impossible demand leaves no row", '(* where ("1" a) ("2" b))', '(* where ("1" c))', NOTHING),
]
NORMAL = [
    ("a set is flat, sorted and without doubles", "(* set b (* set a b) a)", "(* set a b)"),
    ("a set of one is its member", "(* set a)", "a"),
    ("everything in a set is everything", "(* set a (*))", "(*)"),
    ("a glob without a star is a string", '(* glob "ab")', "ab"),
    ("a glob with one star at its end is a prefix", '(* glob "ab*")', "(* prefix ab)"),
    (
        "bounds are sorted and without doubles",
        f"(* bound (upper {CHEAP} {CHEAP}) (lower {CHEAP}) (upper {CHEAP}))",
        f"(* bound (lower {CHEAP}) (upper {CHEAP}))",
    ),
    ("an empty range is nothing", '(* range numeric g "5" l "6")', NOTHING),
]
MALFORMED = [
    ("an empty list", "(ftp ())", "TAG_EMPTY_LIST"),
    ("an unknown star form", "(* regex a)", "TAG_FORM"),
    ("a prefix of two strings", "(* prefix a b)", "TAG_FORM"),
    ("a prefix with a display hint", "(* prefix [t]a)", "TAG_FORM"),
    ("a range with an unknown ordering", '(* range float ge "1")', "TAG_RANGE"),
    ("a range with an unknown limit", '(* range numeric gt "1")', "TAG_RANGE"),
    ("a range with two lower ends", '(* range numeric ge "1" g "2")', "TAG_RANGE"),
    ("a limit that is no number", '(* range numeric ge "x")', "TAG_RANGE"),
    ("a limit without its value", "(* range numeric ge)", "TAG_RANGE"),
    ("an attribute listed twice", '(* where ("1" a) ("1" b))', "TAG_WHERE"),
    ("bounds without a bound", "(* bound)", "TAG_BOUND"),
    ("a bound without a constraint", "(* bound (upper))", "TAG_BOUND"),
    ("a bound of an unknown kind", f"(* bound (wide {CHEAP}))", "TAG_BOUND"),
    ("a constraint of a bound without a type", '(* bound (upper ("1" a)))', "TAG_BOUND"),
    ("octets in a bound", '(* bound (upper ("1" binary (*))))', "TAG_BOUND"),
    (
        "two limits in one constraint of a bound",
        '(* bound (lower ("2" integer (* range numeric ge "1" l "9"))))',
        "TAG_BOUND",
    ),
    ("one attribute of a bound under two types", f'(* bound (upper {CHEAP} ("2" string a)))', "TAG_BOUND"),
    ("an intersection of nothing", "(* and)", "TAG_FORM"),
    ("an intersection of lists", "(* and (a) (b))", "TAG_FORM"),
]
