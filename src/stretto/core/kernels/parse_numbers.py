"""Numbers in text rows, parsed in bulk: the plain ones here, anything unusual is left to the caller.

A plain number is an optional sign, digits and perhaps a fraction, exact in float64: its digits are below
2**53 and its fraction has at most 22 digits, so that one division rounds as the standard asks.
"""

from __future__ import annotations

import numpy as np

from stretto.core.kernels.compile import njit

_NEWLINE = 10
_SEMICOLON = 59
_EXACT = 1 << 53
_MAX_FRACTION = 22


@njit(cache=True, nogil=True)
def is_blank(byte):
    """Say whether a byte separates fields: space, tab, return and their like."""
    return byte == 32 or (byte >= 9 and byte <= 13)


@njit(cache=True, nogil=True)
def plain_number(data, at, end):
    """Return ``(value, next, ok)`` of the number that starts at ``at``."""
    negative = data[at] == 45
    if negative or data[at] == 43:
        at += 1
    mantissa = np.int64(0)
    num_digits = 0
    num_fraction = 0
    seen_point = False
    while at < end and not is_blank(data[at]):
        byte = np.int64(data[at])
        if byte == 46 and not seen_point:
            seen_point = True
        elif byte >= 48 and byte <= 57:
            mantissa = 10 * mantissa + (byte - 48)
            if mantissa > _EXACT:
                return 0.0, at, False
            num_digits += 1
            if seen_point:
                num_fraction += 1
        else:
            return 0.0, at, False
        at += 1
    if num_digits == 0 or num_fraction > _MAX_FRACTION:
        return 0.0, at, False
    value = float(mantissa)
    if num_fraction > 0:
        scale = 1.0  # every step is exact: powers of ten up to 10**22 are
        for _ in range(num_fraction):
            scale *= 10.0
        value /= scale
    return -value if negative else value, at, True


@njit(cache=True, nogil=True)
def parse_rows(data, values, row_line, odd):
    """Fill the rows whose leading fields are all plain numbers; return how many, and how many are odd.

    Blank lines and lines that begin with a semicolon are passed over.

    Parameters
    ----------
    data
        The text, as bytes.
    values
        ``[lines, fields]``: the leading fields of each good row.
    row_line
        ``[lines]``: the line of each good row, from one.
    odd
        ``[lines, 3]``: line, first byte and end of each row that is not plain.
    """
    num_fields = values.shape[1]
    length = data.shape[0]
    num_rows = 0
    num_odd = 0
    line = 0
    begin = 0
    while begin < length:
        line += 1
        end = begin
        while end < length and data[end] != _NEWLINE:
            end += 1
        at = begin
        while at < end and is_blank(data[at]):
            at += 1
        if at < end and data[at] != _SEMICOLON:
            k = 0
            while k < num_fields and at < end:
                value, at, ok = plain_number(data, at, end)
                if not ok:
                    break
                values[num_rows, k] = value
                k += 1
                while at < end and is_blank(data[at]):
                    at += 1
            if k == num_fields:
                row_line[num_rows] = line
                num_rows += 1
            else:
                odd[num_odd, 0] = line
                odd[num_odd, 1] = begin
                odd[num_odd, 2] = end
                num_odd += 1
        begin = end + 1
    return num_rows, num_odd
