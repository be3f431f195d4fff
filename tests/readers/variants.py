"""Variants as readers give them, the bytes of the Variant encoding with or without shredded columns, in canonical form.

    variant    {"variant": VALUE}, so that the variant null is not the null of the column; VALUE is JSON's own null,
               true, numbers, strings, arrays and objects, and else what canonical.py says of the type
"""

import struct

import canonical


def names(metadata):
    """The names of the metadata's dictionary."""
    size = (metadata[0] >> 6) + 1
    count = int.from_bytes(metadata[1 : 1 + size], "little")
    offsets = offsets_at(metadata, 1 + size, count + 1, size)
    start = 1 + size * (count + 2)
    return [metadata[start + a : start + b].decode() for a, b in zip(offsets, offsets[1:])]


def offsets_at(data, at, count, size):
    return [int.from_bytes(data[at + i * size : at + (i + 1) * size], "little") for i in range(count)]


def decoded(data, dictionary):
    """One value, which begins `data`."""
    kind, head = data[0] & 3, data[0] >> 2
    if kind == 0:
        return primitive(head, data[1:])
    if kind == 1:
        return data[1 : 1 + head].decode()
    offset_size = (head & 3) + 1
    large = head >> (4 if kind == 2 else 2) & 1
    count_size = 4 if large else 1
    count = int.from_bytes(data[1 : 1 + count_size], "little")
    at = 1 + count_size
    if kind == 2:
        id_size = (head >> 2 & 3) + 1
        keys = [dictionary[i] for i in offsets_at(data, at, count, id_size)]
        at += count * id_size
    offsets = offsets_at(data, at, count + 1, offset_size)
    start = at + (count + 1) * offset_size
    values = [decoded(data[start + offset :], dictionary) for offset in offsets[:count]]
    return dict(zip(keys, values)) if kind == 2 else values


def primitive(kind, data):
    def integer(size):
        return int.from_bytes(data[:size], "little", signed=True)

    def sized():
        return data[4 : 4 + int.from_bytes(data[:4], "little")]

    def decimal(size):
        digits = str(abs(int.from_bytes(data[1 : 1 + size], "little", signed=True))).rjust(data[0] + 1, "0")
        sign = "-" if data[size] & 0x80 else ""
        return sign + (f"{digits[: -data[0]]}.{digits[-data[0] :]}" if data[0] else digits)

    return {
        0: lambda: None,
        1: lambda: True,
        2: lambda: False,
        3: lambda: integer(1),
        4: lambda: integer(2),
        5: lambda: integer(4),
        6: lambda: integer(8),
        7: lambda: canonical.number(struct.unpack_from("<d", data)[0]),
        8: lambda: decimal(4),
        9: lambda: decimal(8),
        10: lambda: decimal(16),
        11: lambda: canonical.date(integer(4)),
        12: lambda: canonical.timestamp(integer(8), 6, True),
        13: lambda: canonical.timestamp(integer(8), 6, False),
        14: lambda: canonical.number(struct.unpack_from("<f", data)[0]),
        15: lambda: sized().hex(),
        16: lambda: sized().decode(),
        17: lambda: canonical.time(integer(8), 6),
        18: lambda: canonical.timestamp(integer(8), 9, True),
        19: lambda: canonical.timestamp(integer(8), 9, False),
        20: lambda: data[:16].hex(),
    }[kind]()


def is_variant(fields):
    """Whether a struct of these field names is what a reader makes of a variant that it does not know."""
    return {"metadata", "value"} <= set(fields) <= {"metadata", "value", "typed_value"}


MISSING = object()


def from_scalar(scalar):
    """A struct scalar of pyarrow with the fields of a variant."""
    metadata = scalar["metadata"].as_py()
    if not metadata:
        # Readers that know no null structs give one of nulls, or of empty bytes: no variant has such metadata.
        return None
    value = merged(scalar, names(metadata))
    return {"variant": None if value is MISSING else value}


def merged(scalar, dictionary):
    """What `value` and `typed_value` of one level say together."""
    fields = {field.name for field in scalar.type}
    value = scalar["value"].as_py() if "value" in fields else None
    rest = MISSING if value is None else decoded(value, dictionary)
    import pyarrow.types as types

    typed = scalar["typed_value"] if "typed_value" in fields else None
    if typed is None or not typed.is_valid:
        return rest
    kind = typed.type
    if types.is_struct(kind):
        found = {field.name: merged(typed[field.name], dictionary) for field in kind}
        found = {name: inner for name, inner in found.items() if inner is not MISSING}
        return {**found, **(rest if isinstance(rest, dict) else {})}
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind) or "list" in str(kind):
        return [merged(element, dictionary) for element in typed.values]
    return canonical.from_arrow_type(kind)(canonical.unwrapped(typed))
