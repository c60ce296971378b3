"""Tensors go from the safetensors package to Ridgeline and back: safetensors_exchange.py TEST_CHECKPOINT."""
import os
import subprocess
import sys
import tempfile

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

KINDS = {
    "F16": torch.float16, "BF16": torch.bfloat16, "F32": torch.float32, "F64": torch.float64,
    "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2, "I8": torch.int8, "I16": torch.int16,
    "I32": torch.int32, "I64": torch.int64, "U8": torch.uint8, "U16": torch.uint16, "U32": torch.uint32,
    "U64": torch.uint64, "BOOL": torch.bool,
}


def main() -> None:
    sent = {name: torch.arange(15).reshape(3, 5).to(kind) for name, kind in KINDS.items()}
    sent["scalar"] = torch.tensor(7.5)
    sent["empty"] = torch.zeros(0, 4)
    sent["näme \"quoted\""] = torch.ones(2)
    metadata = {"format": "pt", "note": "ünïcode\n"}
    with tempfile.TemporaryDirectory() as folder:
        save_file(sent, os.path.join(folder, "in.safetensors"), metadata)
        subprocess.run([sys.argv[1], "--gtest_filter=Exchange.*", "--gtest_brief=1"], check=True,
                       env={**os.environ, "RIDGELINE_EXCHANGE": folder})
        back = os.path.join(folder, "out.safetensors")
        received = load_file(back)
        assert received.keys() == sent.keys(), sorted(received.keys() ^ sent.keys())
        for name, tensor in sent.items():
            assert received[name].dtype == tensor.dtype and received[name].shape == tensor.shape, name
            assert torch.equal(received[name].contiguous().view(-1).view(torch.uint8),
                               tensor.contiguous().view(-1).view(torch.uint8)), name
        with safe_open(back, "pt") as file:
            assert file.metadata() == metadata, file.metadata()


main()
