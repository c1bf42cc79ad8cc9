"""Damages files that the command reads: JSON by its structure, and any file by its bytes.

All that is drawn comes from one random.Random, so a seed gives the same bytes everywhere.
"""
import copy
import gzip
import json
import zlib

# Values that readers are known to trip over. Raw is text that json.dumps would not write.
HOSTILE_TEXTS = [
    "", "*", "**", "layers.*", "layers.0#0", "~1", "a/b~", "-", "\x1b]0;owned\x07", "\x1b[2J", "\u202e", "\ud800", "\udcff\udcfe",
    "x" * 5000, "\x00", "\n\n", "../../etc/passwd", "/dev/zero", "plugin:/dev/null", "script:x", "%n%s", "nan", "sha256:",
]
RAW = [
    "1e308", "1e400", "-1e400", "1e-400", "-0", "-0.0", "0.1", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "-9223372036854775809", "18446744073709551615", "18446744073709551616", "4611686018427387904", "9007199254740993",
    "2147483647", "2147483648", "-1", "-2", "0", "1" * 400, "NaN", "Infinity", "null", "true", "[]", "{}", "[[]]", "[null]", '""',
    "01", "1.", ".5", "+1", "'a'", "[1,]", '{"a":1,}', '"\\ud800"', '"\\u0000"', '"\\x"', '"', "[" * 100000, '{"a":' * 50000,
    "[" * 2000 + "]" * 2000, "/* */ 1", "\ufeff1",
]
_MARK = "\ue000raw%d\ue001"


class Draft:
    """A JSON document under damage; `text()` writes it."""

    def __init__(self, document, rng):
        self.document = copy.deepcopy(document)
        self.rng = rng
        self.raw = []

    def places(self):
        """A container and a key in it, drawn: as often near the root as in the long columns."""
        here, found = self.document, []
        while isinstance(here, (dict, list)) and here:
            keys = list(here) if isinstance(here, dict) else range(len(here))
            key = self.rng.choice(keys)
            found.append((here, key))
            here = here[key]
        return found

    def place(self):
        found = self.places()
        return self.rng.choice(found) if found else (None, None)

    def raw_value(self, text):
        self.raw.append(text)
        return _MARK % (len(self.raw) - 1)

    def text(self):
        text = json.dumps(self.document, ensure_ascii=False, separators=(",", ":"))
        for i, raw in reversed(list(enumerate(self.raw))):  # a later one may hold an earlier one
            text = text.replace('"' + _MARK % i + '"', raw)
        return text.encode("utf-8", "surrogatepass" if "\ud800" in text else "surrogateescape")


def other_value(draft, old):
    rng = draft.rng
    if isinstance(old, bool) or old is None:
        return rng.choice([True, False, None, 0, "", [], {}])
    if isinstance(old, (int, float)) and rng.random() < 0.6:
        near = [old + 1, old - 1, -old, old * 2, old * 1000, old // 2 if isinstance(old, int) else old / 2, 0, rng.randrange(64)]
        return rng.choice(near)
    if isinstance(old, str) and rng.random() < 0.6:
        at = rng.randrange(len(old) + 1)
        return rng.choice([rng.choice(HOSTILE_TEXTS), old[:at], old[:at] + rng.choice(HOSTILE_TEXTS) + old[at:], old.upper()])
    return rng.choice([draft.raw_value(rng.choice(RAW)), rng.choice(HOSTILE_TEXTS), rng.randrange(-2, 1 << rng.randrange(1, 64))])


def change_value(draft):
    holder, key = draft.place()
    if holder is not None:
        holder[key] = other_value(draft, holder[key])


def change_leaf(draft):
    found = draft.places()
    if found:
        holder, key = found[-1]
        holder[key] = other_value(draft, holder[key])


def remove(draft):
    holder, key = draft.place()
    if holder is not None:
        del holder[key]


def rename_key(draft):
    holder, key = draft.place()
    if isinstance(holder, dict):
        holder[draft.rng.choice([key + "s", key[:-1], *HOSTILE_TEXTS])] = holder.pop(key)


def twice(draft):
    """The same key twice in an object, or an element again."""
    holder, key = draft.place()
    if isinstance(holder, list):
        holder[key:key] = [copy.deepcopy(holder[key])] * draft.rng.choice([1, 1, 2, 500])
    elif holder is not None and key != "":
        # Written behind the first: the two names differ in an escape alone.
        escaped = "\\u%04x" % min(ord(key[0]), 0xFFFF) + key[1:]
        value = json.dumps(other_value(draft, holder[key]), ensure_ascii=False)
        holder[key] = draft.raw_value(json.dumps(holder[key], ensure_ascii=False) + "," + '"' + escaped.replace('"', "") + '":' + value)


def swap(draft):
    """Two values of one kind change places, such as two ids of a column."""
    holder, key = draft.place()
    if isinstance(holder, list) and len(holder) > 1:
        other = draft.rng.randrange(len(holder))
        holder[key], holder[other] = holder[other], holder[key]
    elif isinstance(holder, dict) and len(holder) > 1:
        other = draft.rng.choice(list(holder))
        holder[key], holder[other] = holder[other], holder[key]


def move_value(draft):
    """A value from elsewhere."""
    holder, key = draft.place()
    source, at = draft.place()
    if holder is not None and source is not None:
        holder[key] = copy.deepcopy(source[at])


def change_row(draft):
    """Columns of one length lose, repeat or swap a row together, so that the table stays one."""
    tables = []

    def look(here):
        if isinstance(here, dict):
            columns = [v for v in here.values() if isinstance(v, list)]
            for length in sorted({len(c) for c in columns}):
                same = [c for c in columns if len(c) == length]
                if length > 0 and len(same) > 1:
                    tables.append(same)
            for value in here.values():
                look(value)

    look(draft.document)
    if not tables:
        return
    columns = draft.rng.choice(tables)
    row, other = (draft.rng.randrange(len(columns[0])) for _ in range(2))
    how = draft.rng.randrange(3)
    for column in columns:
        if how == 0:
            del column[row]
        elif how == 1:
            column.insert(row, column[row])
        else:
            column[row], column[other] = column[other], column[row]


CHANGES = [change_value, change_leaf, change_leaf, remove, rename_key, twice, swap, swap, move_value, change_row, change_row]


def damage_json(document, rng):
    draft = Draft(document, rng)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        if not isinstance(draft.document, (dict, list)):
            break
        rng.choice(CHANGES)(draft)
    return draft.text()


def damage_bytes(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        at = rng.randrange(len(data) + 1)
        how = rng.randrange(6)
        if how == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif how == 1 and at < len(data):
            data[at] = rng.randrange(256)
        elif how == 2:
            del data[at:at + rng.choice([1, 2, 16, 1000])]
        elif how == 3:
            data[at:at] = rng.randbytes(rng.choice([1, 2, 16]))
        elif how == 4:
            del data[at:]
        else:
            begin = rng.randrange(len(data) + 1)
            data[at:at] = data[begin:begin + rng.choice([1, 16, 300])]
    return bytes(data)


def damage_gzip(data, rng):
    packed = gzip.compress(data, 1, mtime=0)
    how = rng.randrange(10)
    if how == 0:  # many members
        return packed + gzip.compress(damage_bytes(data[:100], rng), 1, mtime=0)
    if how == 1:  # rubbish behind it
        return packed + rng.randbytes(rng.randrange(1, 40))
    if how == 2:  # the size that it tells is another
        return packed[:-4] + rng.randbytes(4)
    if how == 3:  # its head has every field
        return b"\x1f\x8b\x08" + bytes([rng.randrange(256)]) + packed[4:]
    if how == 4:  # packed twice
        return gzip.compress(packed, 1, mtime=0)
    if how == 5 and rng.random() < 0.1:  # unpacks to far more than it is
        filler = zlib.compressobj(9, zlib.DEFLATED, 31)
        return b"".join(filler.compress(b" " * (1 << 20)) for _ in range(600)) + filler.flush()
    return damage_bytes(packed, rng)
