# SPDX-License-Identifier: Apache-2.0
"""complete.py: what Tab makes of a line in a real, interactive shell, where pipeplan prints its arguments.
usage: complete.py bash|zsh COMPLETION LINE…     for each LINE the arguments after Tab and Enter
"""
import os
import pty
import re
import select
import sys
import tempfile
import time

RC = {
    "bash": """PS1='ready> '
bind 'set enable-bracketed-paste off'
pipeplan() { printf '\\n<%s>\\n' "$*"; }
. 'COMPLETION'
""",
    "zsh": """PS1='ready> '
unset zle_bracketed_paste
autoload -U compinit && compinit -u -D
pipeplan() { printf '\\n<%s>\\n' "$*" }
. 'COMPLETION'
"""}
COMMAND = {"bash": ["bash", "--noprofile", "--rcfile", ".bashrc", "-i"], "zsh": ["zsh", "-d", "-i"]}


def read_until(master, marker, seconds=60.0):
    """→ all that came until the marker, in text."""
    text, end = "", time.monotonic() + seconds
    while not re.search(marker, text) and time.monotonic() < end:
        if select.select([master], [], [], 0.2)[0]:
            text += os.read(master, 65536).decode()
    if not re.search(marker, text):
        raise SystemExit(f"no {marker} in {text!r}")
    return text


def main():
    shell, completion, lines = sys.argv[1], os.path.abspath(sys.argv[2]), sys.argv[3:]
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/.{shell}rc", "w") as file:
            file.write(RC[shell].replace("COMPLETION", completion))
        with open(f"{folder}/a spec.json", "w"):
            pass
        child, master = pty.fork()
        if child == 0:
            os.chdir(folder)
            os.environ.update(TERM="dumb", HOME=folder, ZDOTDIR=folder, INPUTRC="/dev/null")
            os.environ.pop("LD_PRELOAD", None)
            os.execvp(shell, COMMAND[shell])
        read_until(master, "ready> ")
        for line in lines:
            os.write(master, (line + "\t\r").encode())
            print(re.findall("<(.*)>", read_until(master, "<.*>\r\n[^\n]*ready> "))[-1])
        os.write(master, b"exit\r")
        os.waitpid(child, 0)


main()
