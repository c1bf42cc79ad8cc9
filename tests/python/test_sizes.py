"""Sizes as people write them, read ahead of any trace as the library reads them later."""

import pytest
import stowage
from stowage._sizes import bytes_of, bytes_text, time_text

READ = ["24GiB", "24GB", "1.5MiB", "4096", "4096B", "60%", " 60 % ", "0.5 kb", ".5MB", "2.GB", "1.23456789012345kB", "7tib",
        "100%", "33.333%", "9223372036854775807"]
REFUSED = ["", "-5GB", "60 percent", "0", "0%", "0.6", "20G", "abc", "1e9", "1,5GB", "9223372036854775808", "9999999999TB",
           "0.0001B", "1.2.3GB", "GB", "20 gigabytes", "five percent"]


def of_library(trace, text):
    return stowage.plan(trace, text, policy="resident", budget_on="requested").budget_bytes


@pytest.mark.parametrize("text", READ)
def test_what_the_library_reads_is_the_same_size_here(gpt2, text):
    assert bytes_of(text, "budget", gpt2.peaks["requested_bytes"]) == of_library(gpt2, text)


@pytest.mark.parametrize("text", REFUSED)
def test_what_the_library_refuses_is_refused_here(gpt2, text):
    with pytest.raises(stowage.UsageError):
        of_library(gpt2, text)
    with pytest.raises(stowage.UsageError, match="^budget: "):
        bytes_of(text, "budget", gpt2.peaks["requested_bytes"])


@pytest.mark.parametrize("text, meant", [
    ("60 percent", "60%"), ("60 per cent", "60%"), ("60pct", "60%"), ("%60", "60%"), ("0.6", "60%"), (0.6, "60%"),
    ("0.625", "62.5%"), ("20 gigabytes", "20GB"), ("20G", "20GB"), ("20gigs", "20GB"), ("GB 20", "20GB"),
    ("1,5GB", "1.5GB"), ("24 gibibytes", "24GiB"), ("24Gi", "24GiB"), ("512 megs", "512MB"), ("20,000 MB", "20000MB"),
])
def test_the_likely_meaning_is_said(text, meant):
    with pytest.raises(stowage.UsageError) as raised:
        bytes_of(text, "budget", 1000)
    assert raised.value.hint == f'did you mean "{meant}"?'


@pytest.mark.parametrize("text", ["a lot", "-5GB", "1.2.3GB", "", "0"])
def test_where_there_is_none_the_forms_are_listed(text):
    with pytest.raises(stowage.UsageError) as raised:
        bytes_of(text, "budget", 1000)
    assert raised.value.hint.startswith('write "24GiB"') and "60%" in raised.value.hint


def test_a_share_of_nothing():
    with pytest.raises(stowage.UsageError, match="fit: '60%' is a percentage, and there is nothing to take it of"):
        bytes_of("60%", "fit")


@pytest.mark.parametrize("size, text", [
    (0, "0 B"), (999, "999 B"), (1000, "1.00 kB (1,000 bytes)"), (160_966_664, "161 MB (160,966,664 bytes)"),
    (9_996, "10.0 kB (9,996 bytes)"), (999_500, "1.00 MB (999,500 bytes)"), (99_960, "100 kB (99,960 bytes)"),
])
def test_bytes_are_written_as_the_command_does(size, text):
    assert bytes_text(size) == text


@pytest.mark.parametrize("time, text", [(850, "850 ns"), (12_345, "12.3 us"), (1_500_000, "1.50 ms"),
                                        (1_124_371_969, "1.12 s"), (12_000_000_000_000, "12000 s")])
def test_times_likewise(time, text):
    assert time_text(time) == text
