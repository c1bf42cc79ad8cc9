"""Sizes and times as people write them: what the library reads and writes (traces/size_text.h), ahead of any trace."""

from __future__ import annotations

import re

from ._errors import UsageError

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 2**10, "mib": 2**20,
          "gib": 2**30, "tib": 2**40}
_MOST = 2**63 - 1
# What people write besides, in lower case: "percent", "gigabytes", "gigs", "gibibytes", "bytes".
_SHARE = re.compile(r"%|per ?cents?|pct")
_DECIMAL = re.compile(r"([kmgt]?)(?:ilo|ega|iga|era)?(?:bs?|bytes?|[ie]gs?|)")
_BINARY = re.compile(r"([kmgt])(?:ibs?|i|[ie]bibytes?)")
_NUMBER = r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+"


def bytes_of(text: str | int, name: str, of: int | None = None) -> int:
    """The bytes of "24GiB", "24GB", "4096", or of "60%" where `of` says of what. Raises UsageError: it is no size, with
    the likely meaning; `name` is the argument's."""
    written = str(text).strip(" \t")
    found = re.fullmatch(rf"({_NUMBER})[ \t]*(.*)", written, re.DOTALL)
    unit = found[2].lower() if found else None
    if found is None or unit not in _UNITS and unit != "%":
        raise _refused(name, text, "is no size", of is not None)
    if unit == "%" and of is None:
        raise _refused(name, text, "is a percentage, and there is nothing to take it of", False)
    whole, _, decimals = found[1].partition(".")
    decimals = decimals[:9]
    number, scale = int(whole + decimals or "0"), 10 ** len(decimals)
    size = number * of // (100 * scale) if unit == "%" and of is not None else number * _UNITS[unit or ""] // scale
    if size > _MOST:
        raise _refused(name, text, "is too large", of is not None)
    if size < 1 and (number == 0 or unit != "%"):
        raise _refused(name, text, "is less than one byte", of is not None)
    return max(size, 1)


def _refused(name: str, text: str | int, what: str, may_be_share: bool) -> UsageError:
    meant = _likely(str(text), may_be_share)
    hint = f'did you mean "{meant}"?' if meant else 'write "24GiB", "24GB", "512MiB" or 4096'
    if not meant and may_be_share:
        hint += ', or "60%" of what the step takes'
    return UsageError(f"{name}: {str(text)[:40]!r} {what}", hint=hint)


# "60%" for "60 percent", "0.6" and "%60"; "20GB" for "20 gigabytes", "20g" and "GB 20"; "1.5GB" for "1,5GB".
def _likely(text: str, may_be_share: bool) -> str | None:
    written = re.sub(r"[\s_]", "", text).lower()
    written = re.sub(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))", "", written).replace(",", ".")
    found = re.fullmatch(rf"(?P<ahead>[^0-9.-]*)(?P<number>{_NUMBER})(?P<behind>[^0-9.-]*)", written)
    if found is None or found["ahead"] and found["behind"] or float(found["number"]) == 0:
        return None
    number, unit = found["number"], found["ahead"] or found["behind"]
    if _SHARE.fullmatch(unit):
        return f"{number}%" if may_be_share else None
    if unit == "" and float(number) < 1:
        return f"{float(number) * 100:.10g}%" if may_be_share else None
    if binary := _BINARY.fullmatch(unit):
        return f"{number}{binary[1].upper()}iB"
    decimal = _DECIMAL.fullmatch(unit)
    return f"{number}{decimal[1].upper()}B" if decimal else None


def bytes_text(size: int) -> str:
    """Three significant digits, 1000-based, and in full: "161 MB (161,480,704 bytes)"."""
    short = _three_digits(size, ("B", "kB", "MB", "GB", "TB", "PB", "EB"))
    return short if size < 1000 else f"{short} ({size:,} bytes)"


def time_text(time_ns: int) -> str:
    """Three significant digits: "850 ns", "12.3 us", "1.50 ms"; seconds are the largest unit."""
    return _three_digits(time_ns, ("ns", "us", "ms", "s"))


def _three_digits(value: int, names: tuple[str, ...]) -> str:
    if value < 1000:
        return f"{value} {names[0]}"
    at = 1
    while at + 1 < len(names) and value >= 1000 ** (at + 1) - 1000**at // 2:
        at += 1
    unit = 1000**at
    decimals = 0 if value // unit >= 100 else 1 if value // unit >= 10 else 2
    scaled = (value * 10**decimals + unit // 2) // unit
    if decimals and scaled >= 1000:  # 9.996 is 10.0
        decimals -= 1
        scaled = (value * 10**decimals + unit // 2) // unit
    text = str(scaled)
    return f"{text[:-decimals]}.{text[-decimals:]} {names[at]}" if decimals else f"{text} {names[at]}"
