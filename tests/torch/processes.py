# SPDX-License-Identifier: Apache-2.0
"""processes.py: runs a function or a file in several processes that make one process group, without torchrun, which would import PyTorch once more for
each.
"""
import contextlib
import os
import runpy
import socket
import sys
import tempfile
import time
import traceback

import torch
import torch.fx.experimental.symbolic_shapes  # noqa: F401  which autograd would import in every process, for seconds


def run(world, work, *args, timeout=120):
    """work(*args) in `world` processes with torchrun's variables → [(exit status, standard output, standard error)] by rank.

    They are forked: what is imported stays so. A status of −9 is a process that was still there at the end of the time.
    """
    return run_together([(world, work, *args)], timeout)[0]


def run_together(calls, timeout=120):
    """[(world, work, *args), …] → what run gives of each. All at once: for what waits more than it computes."""
    with contextlib.ExitStack() as stack:
        started, deadline = [], time.monotonic() + timeout
        for world, work, *args in calls:
            probe = stack.enter_context(socket.socket())            # keeps others from its port until the processes have theirs
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", 0))
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            started.append((folder, [_fork(rank, world, probe.getsockname()[1], folder, work, args) for rank in range(world)]))
        status = [[_wait(child, deadline) for child in children] for _, children in started]
        return [[(code, _read(folder, rank, 1), _read(folder, rank, 2)) for rank, code in enumerate(codes)]
                for (folder, _), codes in zip(started, status)]


def run_file(world, file, *arguments, timeout=120):
    """The same for `python FILE ARGUMENTS…`."""
    def work():
        sys.argv = [file, *arguments]
        sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
        runpy.run_path(file, run_name="__main__")
    return run(world, work, timeout=timeout)


def _fork(rank, world, port, folder, work, args):
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    status = 70
    try:
        for number in 1, 2:
            file = os.open(_path(folder, rank, number), os.O_WRONLY | os.O_CREAT)
            os.dup2(file, number)
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world), LOCAL_WORLD_SIZE=str(world), MASTER_ADDR="127.0.0.1",
                          MASTER_PORT=str(port))
        torch.set_num_threads(1)
        work(*args)
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
        if not isinstance(error.code, int):
            os.write(2, f"{error.code}\n".encode())
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _wait(child, deadline):
    while time.monotonic() < deadline:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, 9)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _path(folder, rank, number):
    return os.path.join(folder, f"{rank}.{number}")


def _read(folder, rank, number):
    with open(_path(folder, rank, number)) as file:
        return file.read()
