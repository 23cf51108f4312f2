"""The module on a sample, whose branches are known: `hip-samples/src/divergence.hip`."""
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

import wavetap

SAMPLES = Path(os.environ.get("WAVETAP_SAMPLES_FOLDER", Path(__file__).parents[2] / "hip-samples/bin"))


def has(module):
    return importlib.util.find_spec(module) is not None


class Profiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.program = SAMPLES / "divergence"
        cls.profile = wavetap.run([cls.program], target="gfx90a")

    def test_the_counts_are_those_of_the_source(self):
        self.assertTrue(self.profile.complete)
        sites = self.profile.sites("branches", "exec")
        # 16 workgroups of two waves: the first of each has lanes on both sides of `threadIdx.x < 32`.
        at = {row["demangled"].split("(")[0]: row for row in sites}
        self.assertEqual((at["divergent"]["executions"], at["divergent"]["agreements"]), (32, 16))
        self.assertEqual((at["non_divergent"]["executions"], at["non_divergent"]["agreements"]), (32, 32))
        self.assertEqual(at["divergent"]["line"], 7)
        self.assertEqual([row["waves"] for row in self.profile.kernels()], [32, 32])
        self.assertEqual(self.profile.launches()[0]["grid"], [2048, 1, 1])
        self.assertEqual(len(self.profile.not_counted()), 0)

    def test_kinds_that_are_not_one_are_refused(self):
        with self.assertRaisesRegex(ValueError, "several of the kinds is branches: there are branches/exec, branches/"):
            self.profile.sites("branches")
        with self.assertRaisesRegex(ValueError, "none of the kinds is blocks"):
            self.profile.sites("blocks")

    def test_findings_name_the_line(self):
        findings = self.profile.findings(self.program)
        divergence = [row for row in findings if row["rule"] == "divergence"]
        self.assertEqual([(row["line"], row["kernel"]) for row in divergence], [(7, "_Z9divergentPjS_")])

    def test_a_profile_is_read_again(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "p"
            self.profile.save(path)
            again = wavetap.Profile.read(path)
            self.assertEqual(again.document, self.profile.document)
            path.write_text('{"schema": "wavetap.profile/9"}')
            with self.assertRaisesRegex(wavetap.Error, "schema 'wavetap.profile/9', expected"):
                wavetap.Profile.read(path)
            path.write_text("no")
            with self.assertRaisesRegex(wavetap.Error, "no profile"):
                wavetap.Profile.read(path)

    def test_errors_of_the_command_are_raised(self):
        with self.assertRaisesRegex(wavetap.Error, "nowhere") as raised:
            wavetap.run(["./nowhere"])
        self.assertEqual(raised.exception.code, 2)
        with self.assertRaises(wavetap.Error):
            wavetap.objects(__file__)

    @unittest.skipUnless(has("pandas"), "pandas is not installed")
    def test_tables_are_frames_of_pandas(self):
        frame = self.profile.sites("branches", "exec").to_pandas()
        self.assertEqual(int(frame.executions.sum()), 64)

    @unittest.skipUnless(has("polars"), "Polars is not installed")
    def test_tables_are_frames_of_polars(self):
        self.assertEqual(self.profile.sites("branches", "exec").to_polars()["executions"].sum(), 64)

    @unittest.skipUnless(has("pyarrow"), "pyarrow is not installed")
    def test_tables_are_tables_of_arrow(self):
        self.assertEqual(self.profile.launches().to_arrow().num_rows, 2)


class Code(unittest.TestCase):
    program = SAMPLES / "divergence"

    def test_objects_and_kernels(self):
        self.assertEqual(wavetap.objects(self.program).column("target"), ["gfx906", "gfx90a", "gfx942"])
        kernels = wavetap.kernels(self.program)
        self.assertEqual({row["name"] for row in kernels}, {"_Z9divergentPjS_", "_Z13non_divergentPjS_"})
        self.assertTrue(all(row["vgprs"] > 0 for row in kernels))

    def test_disassembly_has_lines(self):
        code = wavetap.disassembly(self.program, kernel="divergent", target="gfx90a")
        self.assertEqual(code[-1]["function"], "_Z9divergentPjS_")
        self.assertIn(7, code.column("line"))

    def test_slices_have_operations(self):
        waits = wavetap.slices(SAMPLES / "spmv", target="gfx90a")
        self.assertTrue(any(row["operations"] and row["line"] == 10 for row in waits))

    def test_columns_that_are_not_there_are_named(self):
        with self.assertRaisesRegex(KeyError, "no column 'x': there are a, b"):
            wavetap.Table([{"a": 1}, {"b": 2}]).column("x")
        self.assertEqual(wavetap.Table([{"a": 1}, {"b": 2}]).to_dict(), {"a": [1, None], "b": [None, 2]})


class Ranges(unittest.TestCase):
    def test_without_the_command_a_warning_says_so(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with wavetap.profile("train"):
                pass
        self.assertEqual(len(caught), 1)
        self.assertIn("nothing is counted in 'train'", str(caught[0].message))
        self.assertEqual(caught[0].filename, __file__)

    def test_a_range_of_a_script_has_its_launches(self):
        library = Path(__file__).parent / "launch.py"
        profile = wavetap.run([sys.executable, library, SAMPLES / "divergence"])
        regions = {(one["region"], one["demangled"].split("(")[0]) for one in profile.document["regions"]}
        self.assertIn(("train", "divergent"), regions)


if __name__ == "__main__":
    unittest.main()
