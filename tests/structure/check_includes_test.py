"""scripts/check-includes finds each kind of fault in a small tree, and nothing in a sound one."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "check-includes"

CMAKE = "ridgeline_room(core LIBRARIES fmt::fmt)\nif(X)\n  ridgeline_room(mesh TORCH)\n  ridgeline_room(nn TORCH)\nendif()\n"
SOUND = {
    "src/core/error.h": "#include <string>\n",
    "src/mesh/mesh.h": '#include "core/error.h"\n#include <ATen/ATen.h>\n',
    "src/nn/deep/layer.cpp": '#include "mesh/mesh.h"\n#include "nn/local.h"\n',
    "src/cli/main.cpp": '#include "nn/local.h"\n',
    "src/nn/local.h": "",
}


class CheckIncludes(unittest.TestCase):
    def run_on(self, changes):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {"CMakeLists.txt": CMAKE, **SOUND, **changes}.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            done = subprocess.run([sys.executable, SCRIPT, folder], capture_output=True, text=True)
            return done.returncode, done.stdout + done.stderr

    def refuses(self, changes, expected):
        code, output = self.run_on(changes)
        self.assertEqual(code, 1, output)
        self.assertIn(expected, output)

    def test_accepts_a_sound_tree(self):
        code, output = self.run_on({})
        self.assertEqual(code, 0, output)
        self.assertIn("5 files of 3 rooms", output)

    def test_refuses_an_include_of_a_room_below(self):
        self.refuses({"src/mesh/up.cpp": '\n#include "nn/local.h"\n'}, "src/mesh/up.cpp:2: room 'mesh' may not include")

    def test_refuses_it_in_folders_of_a_room_and_in_tests(self):
        self.refuses({"src/mesh/deep/up.h": '#  include "nn/local.h"\n'}, "src/mesh/deep/up.h:1:")
        self.refuses({"tests/mesh/up_test.cpp": '#include "nn/local.h"\n'}, "tests/mesh/up_test.cpp:1:")

    def test_refuses_torch_in_a_room_without_it(self):
        self.refuses({"src/core/t.cpp": "#include <c10/core/Device.h>\n"}, "room 'core' is not declared TORCH")

    def test_refuses_long_files(self):
        self.refuses({"src/core/long.cpp": "\n" * 601}, "src/core/long.cpp:601: 601 lines")
        self.assertEqual(self.run_on({"src/core/long.cpp": "\n" * 600})[0], 0)

    def test_refuses_a_tree_without_rooms(self):
        self.refuses({"CMakeLists.txt": "project(x)\n"}, "expected ridgeline_room(NAME ...) calls")


if __name__ == "__main__":
    unittest.main()
