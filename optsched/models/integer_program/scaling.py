"""Decimal numbers of files as integers, exactly."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from optsched.errors import InputError
from optsched.models.fields import LARGEST_FIELD

MOST_DECIMALS = 6
"""Most decimals of a number in a file."""


def factor_of(numbers: Iterable[int | Decimal]) -> int:
    """Return the least power of ten that makes all numbers integers.

    Raises
    ------
    InputError
        If a number has more than `MOST_DECIMALS` decimals, or is too large for a problem.

    Examples
    --------
    >>> factor_of([Decimal("600.1"), Decimal("40"), Decimal("18.60")])
    10
    """
    decimals = 0
    for number in numbers:
        if isinstance(number, int) and abs(number) * 10**decimals <= LARGEST_FIELD:
            continue  # almost all numbers
        number = Decimal(number)
        exponent = number.normalize().as_tuple().exponent
        if not isinstance(exponent, int) or -exponent > MOST_DECIMALS:
            raise InputError(f"{number:f}; expected at most {MOST_DECIMALS} decimals")
        decimals = max(decimals, -exponent)
        if abs(number) * 10**decimals > LARGEST_FIELD:
            raise InputError(f"{number:f}; expected a number of at most {LARGEST_FIELD}")
    factor: int = 10**decimals
    return factor
