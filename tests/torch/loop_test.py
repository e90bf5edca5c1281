# SPDX-License-Identifier: Apache-2.0
"""loop_test.py: the commands of docs/running.md, pasted as they stand into one shell: every one ends as the page says, with what
it is there to show. Only the line that installs PyTorch is left out, and torchrun is this process, which has imported PyTorch once and forks; its
command line is read by torchrun's own parser.
Wants $PIPEPLAN, the program, and PyTorch 2.9 or newer; run.sh finds both.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import unittest

import torch.distributed.pipelining  # noqa: F401  most of what a process of the examples takes to begin
from torch.distributed.run import parse_args

import processes

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
    ("pipeplan monitor", {1}, r"ROLL BACK · utilisation [\s\S]*pipeplan plan SPEC --context 1 --schedule 1f1b --virtual 1\s"),
    ("plan --schedule 1f1b", {0}, r"^$"),
    ("train", {0}, r"checked: loss [\d.]+ and 68 gradients are the unpipelined model's[\s\S]* iteration +6/ +6 "),
    ("examples/torch/compare.py", {0}, r"\ninterleaved_1f1b +2 [\s\S]*\n1f1b +2 [\s\S]*\nthe plan against its fallback, ms"
                                       r"[\s\S]*: interleaved_1f1b, against 1f1b +[\d.]+ .* (the plan|the fallback|neither)\n"),
]


def lines_of(page):
    """→ all lines of the shell blocks that the page says run here."""
    blocks = re.findall(r"^<!-- run by: tests/torch/loop_test.py -->\n```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.replace("\\\n", "").splitlines()]


# What the shell asks of this process: words, each ended by a zero byte. The answers: standard output, standard error, exit status.
ASKED, ANSWERS = "asked", ("out", "err", "status")
TORCHRUN = r"""torchrun() { printf '%s\0' "$@" >PIPES/asked; cat PIPES/out; cat PIPES/err >&2; return "$(cat PIPES/status)"; }"""


def torchrun(words):
    read = parse_args(words)
    done = processes.run_file(int(read.nproc_per_node), read.training_script, *read.training_script_args, timeout=800)   # torchrun has no limit
    return "".join(out for _, out, _ in done), "".join(err for _, _, err in done), str(max(abs(status) for status, _, _ in done))


def serve(pipes, shell):
    """Answers until the shell has ended, when nobody asks any more."""
    def end():
        try:
            shell.wait(timeout=900)
        finally:
            shell.kill()
            open(f"{pipes}/{ASKED}", "wb").close()

    threading.Thread(target=end, daemon=True).start()
    while True:
        with open(f"{pipes}/{ASKED}", "rb") as file:
            words = file.read().decode().split("\0")[:-1]
        if not words:
            return
        for name, text in zip(ANSWERS, torchrun(words)):
            with open(f"{pipes}/{name}", "w") as file:
                file.write(text)


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
            pipes = f"{folder}/pipes"
            os.mkdir(pipes)
            for name in ASKED, *ANSWERS:
                os.mkfifo(f"{pipes}/{name}")
            runs = [f"{{ {command}\n}} >{number}.out 2>{number}.err; echo $? >{number}.status"
                    for number, command in enumerate(commands)]
            script = [*prepare, TORCHRUN.replace("PIPES", pipes), *runs]
            os.environ.pop("LD_PRELOAD", None)
            os.environ.update(PATH=f"{folder}/build/release:{os.path.dirname(sys.executable)}:{os.environ['PATH']}", PYTHONWARNINGS="ignore")
            os.chdir(folder)
            self.addCleanup(os.chdir, ROOT)
            shell = subprocess.Popen(["bash", "-c", "\n".join(script)], cwd=folder)
            serve(pipes, shell)
            self.assertEqual(0, shell.wait())
            for number, (command, (_, statuses, printed)) in enumerate(zip(commands, EXPECTED)):
                status, out, err = (pathlib.Path(folder, f"{number}.{kind}").read_text() for kind in ("status", "out", "err"))
                with self.subTest(command=command):
                    self.assertIn(int(status), statuses, out + err)
                    self.assertRegex(out, printed)


if __name__ == "__main__":
    unittest.main()
