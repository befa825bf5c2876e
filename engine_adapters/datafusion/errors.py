"""What DataFusion raises, as errors of the protocol: one line about the cause."""

from __future__ import annotations

import re

from engine_adapters.lending import LentErrors
from engine_adapters.protocol import EngineQueryError
from engine_adapters.streams import one_line, remembered

__all__ = ["translate"]

_HEAD = re.compile(r"^(DataFusion error: )+")
_TAIL = re.compile(r"\s*(\nThis issue was likely caused by a bug|\n+backtrace:).*", re.DOTALL)
_SYNTAX = re.compile(r"^SQL error: (?:Parser|Tokenizer)Error\(\"(.*)\"\)", re.DOTALL)
_PLANNING = re.compile(r"^(Error during planning|Schema error|type_coercion)\b")


def translate(error: BaseException, lent: LentErrors, *, at_bind: bool) -> BaseException:
    """The error to raise for what DataFusion raised: what a lent relation raised first, else one of the protocol."""
    known = remembered(error, lent)
    if known is not None:
        return known
    # The last of the causes is the reason; what comes before are the steps of the planner.
    text = _TAIL.sub("", str(error).strip().rsplit("\ncaused by\n", maxsplit=1)[-1])
    text = _HEAD.sub("", text).strip() or type(error).__name__
    syntax = _SYNTAX.match(text)
    # Some of what is wrong with a query comes up only when its plan is made ready to run.
    is_planning = at_bind or _PLANNING.match(text) is not None
    ours = EngineQueryError(
        one_line(text if syntax is None else syntax.group(1)),
        at_bind=is_planning,
        is_syntax=syntax is not None,
    )
    ours.__cause__ = error
    return ours
