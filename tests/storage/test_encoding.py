from __future__ import annotations

import json
import math
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sooner.analysis.facts import ColumnFacts, TableFacts
from sooner.errors import CatalogError
from sooner.storage.encoding import decode_facts, decode_value, encode_facts, encode_value

# Any code points, single halves of pairs too; Hypothesis would first sort all that there are.
TEXTS = st.text(st.integers(0, sys.maxunicode).map(chr))
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    TEXTS,
    st.binary(),
    st.dates(),
    st.times(),
    st.datetimes(),
    st.datetimes(timezones=st.just(UTC)),
    st.decimals(allow_nan=False),
)
COUNTS = st.none() | st.integers(min_value=0)
FACTS = st.builds(
    TableFacts,
    COUNTS,
    COUNTS,
    st.dictionaries(TEXTS, st.builds(ColumnFacts, VALUES, VALUES, COUNTS, COUNTS), max_size=3),
)


@given(VALUES)
@settings(max_examples=settings.default.max_examples * 2)
def test_values_read_back_equal_and_of_the_same_type(value: Any) -> None:
    text = json.dumps(encode_value(value), allow_nan=False)
    found = decode_value(json.loads(text))
    assert found == value
    assert type(found) is type(value)
    assert text.isascii()


@given(FACTS)
def test_facts_read_back_equal(facts: TableFacts) -> None:
    assert decode_facts(encode_facts(facts)) == facts


def test_details_that_equality_does_not_see() -> None:
    assert math.isnan(decode_value(encode_value(float("nan"))))
    assert math.copysign(1, decode_value(json.loads(json.dumps(encode_value(-0.0))))) == -1
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    assert decode_value(encode_value(moment)).utcoffset() == moment.utcoffset()


@pytest.mark.parametrize("stored", [{"lambda": "x"}, {}, {"date": "2024-01-01", "more": 1}])
def test_what_is_not_known_is_not_read(stored: Any) -> None:
    with pytest.raises(CatalogError, match="cannot read"):
        decode_value(stored)


def test_nor_written() -> None:
    with pytest.raises(CatalogError, match="object"):
        encode_value(object())
