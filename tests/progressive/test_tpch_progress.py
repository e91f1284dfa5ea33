"""The 22 TPC-H queries in steps: every answer of one schema, the last one what Spark gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from comparison import assert_same_answer

from sooner.tpch.load import QUERIES, query

if TYPE_CHECKING:
    from sooner import Database

pytestmark = pytest.mark.spark

# These compare streamed rows with an aggregate that is still open, under every choice of streams.
IN_ONE_STEP: set[int] = set()


@pytest.mark.parametrize("number", QUERIES)
def test_the_last_answer_is_sparks(scrambled: Database, number: int) -> None:
    text = query(number)
    frame = scrambled.sql(text)
    answers = list(frame.progress(batches=5, seed=number))
    assert [answer.final for answer in answers] == [False] * (len(answers) - 1) + [True]
    assert (len(answers) == 1) == (number in IN_ONE_STEP)
    shares = [answer.progress for answer in answers]
    assert shares == sorted(shares) and shares[-1] == 1
    last = answers[-1].to_arrow()
    assert all(answer.to_arrow().schema == last.schema for answer in answers)
    assert_same_answer(last, frame.exact().to_arrow())
