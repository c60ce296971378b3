"""Token files written with numpy from docs/token-files.md, through our reader and writer, and read back with numpy."""

import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy

CODES = {"uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint16": 8}


def write(prefix, dtype, documents):
    """Each document is a list of sequences."""
    sequences = [sequence for document in documents for sequence in document]
    lengths = numpy.array([len(sequence) for sequence in sequences], dtype="<i4")
    ends = numpy.cumsum(lengths, dtype="<i8") * numpy.dtype(dtype).itemsize
    pointers = numpy.concatenate([numpy.zeros(1, "<i8"), ends])[: len(sequences)].astype("<i8")
    entries = numpy.cumsum([0] + [len(document) for document in documents]).astype("<i8")
    with open(f"{prefix}.bin", "wb") as file:
        for sequence in sequences:
            file.write(sequence.tobytes())
    with open(f"{prefix}.idx", "wb") as file:
        file.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, CODES[dtype], len(sequences), len(entries)))
        for array in (lengths, pointers, entries):
            file.write(array.tobytes())


def read(prefix):
    index = pathlib.Path(f"{prefix}.idx").read_bytes()
    assert index[:9] == b"MMIDIDX\0\0"
    version, code, sequences, entries = struct.unpack_from("<QBQQ", index, 9)
    assert version == 1
    lengths = numpy.frombuffer(index, "<i4", sequences, 34)
    pointers = numpy.frombuffer(index, "<i8", sequences, 34 + 4 * sequences)
    documents = numpy.frombuffer(index, "<i8", entries, 34 + 12 * sequences)
    assert len(index) == 34 + 12 * sequences + 8 * entries
    dtype = {code: name for name, code in CODES.items()}[code]
    data = pathlib.Path(f"{prefix}.bin").read_bytes()
    parts = [numpy.frombuffer(data, dtype, length, pointer) for length, pointer in zip(lengths, pointers)]
    empty = [numpy.zeros(0, dtype)]
    return dtype, [numpy.concatenate(empty + parts[a:b]) for a, b in zip(documents, documents[1:])]


def main():
    program = sys.argv[1]
    random = numpy.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        for dtype in CODES:
            largest = numpy.iinfo(dtype).max
            documents = [
                [
                    random.integers(0, largest, random.integers(0, 50), dtype=dtype, endpoint=True)
                    for _ in range(random.integers(0, 4))
                ]
                for _ in range(40)
            ]
            write(f"{folder}/from", dtype, documents)
            subprocess.run([program, f"{folder}/from", f"{folder}/to"], check=True)
            found_dtype, found = read(f"{folder}/to")
            assert found_dtype == dtype
            assert len(found) == len(documents)
            for ours, sequences in zip(found, documents):
                assert numpy.array_equal(ours, numpy.concatenate([numpy.zeros(0, dtype)] + sequences))
            print(f"{dtype}: {len(found)} documents, {sum(map(len, found))} tokens, equal")


if __name__ == "__main__":
    main()
