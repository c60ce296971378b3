"""scripts/count-tests counts cases, and never calls a bad run good."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from xml.sax.saxutils import escape

SCRIPT = Path(__file__).parents[2] / "scripts" / "count-tests"

PASSES = "[==========] 12 tests from 3 test suites ran. (7 ms total)\n[  PASSED  ] 11 tests.\n[  SKIPPED ] 1 test, listed below:\n"
FAILS = ("[==========] 5 tests from 1 test suite ran. (7 ms total)\n[  PASSED  ] 3 tests.\n"
         "[  FAILED  ] 2 tests, listed below:\n[  FAILED  ] A.b\n[  FAILED  ] A.c\n")


def entry(name, status="run", output="", reason=None):
    skipped = f'<skipped message="{reason}"/>' if reason else ""
    return f'<testcase name="{name}" status="{status}">{skipped}<system-out>{escape(output)}</system-out></testcase>'


class CountTests(unittest.TestCase):
    def expect(self, entries, ctest_code, exit_code, last_line):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "results.xml")
            path.write_text(f"<testsuite>{''.join(entries)}</testsuite>")
            done = subprocess.run([sys.executable, SCRIPT, path, str(ctest_code)], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (exit_code, last_line), done.stderr)

    def test_counts_cases_of_googletest_and_entries_of_others(self):
        self.expect([entry("g", output=PASSES), entry("script")], 0, 0, "12 passed, 0 failed, 1 skipped")

    def test_counts_failures(self):
        self.expect([entry("g", "fail", FAILS), entry("script", "fail")], 8, 1, "3 passed, 3 failed")

    def test_a_crash_after_or_before_the_summary_is_a_failure(self):
        self.expect([entry("g", "fail", PASSES)], 8, 1, "11 passed, 1 failed, 1 skipped")
        self.expect([entry("g", "fail", "Segmentation fault")], 8, 1, "0 passed, 1 failed")

    def test_takes_the_summary_of_the_program_not_of_those_that_it_started(self):
        self.expect([entry("g", output=PASSES + PASSES.replace("11 tests", "2 tests"))], 0, 0,
                    "2 passed, 0 failed, 1 skipped")

    def test_a_missing_program_failed_and_a_disabled_one_was_skipped(self):
        self.expect([entry("a"), entry("b", "notrun", reason="Unable to find executable")], 8, 1, "1 passed, 1 failed")
        self.expect([entry("a"), entry("b", "disabled"), entry("c", "notrun", reason="SKIP_RETURN_CODE=77")], 0, 0,
                    "1 passed, 0 failed, 2 skipped")

    def test_nothing_run_is_not_good(self):
        self.expect([], 0, 1, "0 passed, 0 failed")
        self.expect([entry("g", output="[==========] 0 tests from 0 test suites ran. (0 ms total)\n[  PASSED  ] 0 tests.\n")],
                    0, 1, "0 passed, 0 failed")

    def test_an_unhappy_ctest_is_not_good(self):
        self.expect([entry("a")], 8, 1, "1 passed, 0 failed")


if __name__ == "__main__":
    unittest.main()
