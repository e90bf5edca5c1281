# SPDX-License-Identifier: Apache-2.0
"""loop_test.py: the commands of docs/running.md, pasted as they stand into one shell: every one ends as the page says, with what
it is there to show. Only the line that installs PyTorch is left out, and torchrun is forked_torchrun.py, in half the time.
Wants $PIPEPLAN, the program, and PyTorch 2.9 or newer; run.sh finds both.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
INSTALL = "scripts/torch && . build/torch/bin/activate"
VERDICTS = r"(KEEP|UNDECIDED|ROLL BACK) · utilisation [\d.]+ %"

# Each command that runs, in order: how it begins, its exit status, and what it has to print. A busy machine decides the healthy run's verdict.
EXPECTED = [
    ("torchrun", {0}, r"^$"),
    ("plan", {0}, r"interleaved 1F1B · P 2 · V 4 · M 2 [\s\S]*\nmeasured  stages, on 2 × CPU[\s\S]*\nrollback "),
    ("plan --format json", {0}, r"^$"),
    ("plan --format csv", {0}, r"^$"),
    ("train", {0}, r"checked: loss [\d.]+ and 68 gradients are the unpipelined model's[\s\S]* iteration +12/ +12 "),
    ("examples/torch/compare.py", {0}, r"\ninterleaved_1f1b +2 [\s\S]*\nerrors\n"),
    ("pipeplan monitor", {0, 1}, VERDICTS),
    ("train", {0}, r" iteration +7/ +7 "),
    ("pipeplan monitor", {1}, r"ROLL BACK · utilisation [\s\S]*pipeplan plan SPEC --schedule 1f1b --pipeline 2 --virtual 1\n"),
    ("plan --schedule 1f1b", {0}, r"^$"),
    ("train", {0}, r"checked: loss [\d.]+ and 68 gradients are the unpipelined model's[\s\S]* iteration +6/ +6 "),
    ("examples/torch/compare.py", {0}, r"\ninterleaved_1f1b +2 [\s\S]*\n1f1b +2 [\s\S]*\nthe plan against its fallback, ms"
                                       r"[\s\S]*: interleaved_1f1b, against 1f1b +[\d.]+ .* (the plan|the fallback|neither)\n"),
]


def lines_of(page):
    """→ all lines of the shell blocks that the page says run here."""
    blocks = re.findall(r"^<!-- run by: tests/torch/loop_test.py -->\n```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.replace("\\\n", "").splitlines()]


class Loop(unittest.TestCase):
    def test_commands_of_the_page_run_as_written(self):
        lines = lines_of((ROOT / "docs/running.md").read_text())
        self.assertEqual(INSTALL, lines.pop(0))
        prepare = [line for line in lines if line.startswith("export ") or re.match(r"\w+\(\) {", line)]
        commands = [line for line in lines if line not in prepare]
        self.assertEqual(3, len(prepare))
        self.assertEqual([begin for begin, _, _ in EXPECTED], [line[:len(begin)] for line, (begin, _, _) in zip(commands, EXPECTED)])
        self.assertEqual(len(EXPECTED), len(commands))
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(f"{folder}/build")
            os.symlink(ROOT / "examples", f"{folder}/examples")
            os.symlink(pathlib.Path(os.environ["PIPEPLAN"]).resolve().parent, f"{folder}/build/release")
            forked = f"torchrun() {{ '{sys.executable}' '{ROOT}/tests/torch/forked_torchrun.py' \"$@\"; }}"
            runs = [f"{{ {command}\n}} >{number}.out 2>{number}.err; echo $? >{number}.status"
                    for number, command in enumerate(commands)]
            script = [*prepare, forked, *runs]
            environment = {**os.environ, "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"}
            environment.pop("LD_PRELOAD", None)
            subprocess.run(["bash", "-c", "\n".join(script)], cwd=folder, env=environment, timeout=900, check=True)
            for number, (command, (_, statuses, printed)) in enumerate(zip(commands, EXPECTED)):
                status, out, err = (pathlib.Path(folder, f"{number}.{kind}").read_text() for kind in ("status", "out", "err"))
                with self.subTest(command=command):
                    self.assertIn(int(status), statuses, out + err)
                    self.assertRegex(out, printed)


if __name__ == "__main__":
    unittest.main()
