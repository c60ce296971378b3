"""Command lines of launchers: openmpi(4, words) are the words that start `words` as four ranks; openmpi.here() says
whether this machine has it."""

import os
import shutil

from training import TORCHRUN


def launcher(program):
    def decorate(function):
        function.here = lambda: program is None or bool(shutil.which(program))
        return function
    return decorate


@launcher(None)
def nproc(ranks, words):
    return [*words, "--nproc", ranks]


@launcher(TORCHRUN)
def torchrun(ranks, words):
    # What --standalone means, but by addresses: it looks the host's name up, and waits minutes where that is not known.
    here = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1"]
    return [TORCHRUN, "--no-python", "--nnodes", "1", *here, "--nproc-per-node", ranks, *words]


@launcher("mpirun.openmpi")
def openmpi(ranks, words):
    as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return ["mpirun.openmpi", *as_root, "--oversubscribe", "-n", ranks, *words]


@launcher("mpirun.mpich")
def mpich(ranks, words):
    return ["mpirun.mpich", "-n", ranks, *words]


ALL = (nproc, torchrun, openmpi, mpich)
