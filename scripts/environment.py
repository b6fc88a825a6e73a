"""Makes the virtual environment that the scripts here run in; standard library only.

Usage: environment.py FOLDER [base|test|oracle]

A finished environment has a stamp file `ready-SET` that holds the path of the checkout; it counts
while it is newer than pyproject.toml. One process at a time works on a folder (a lock that the
system drops with its holder), the others wait and find the work done. What was interrupted has no
stamp and is made anew.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SETS = {"base": "", "test": "[test]", "oracle": "[test,oracle]"}
OURS = "made-by-tensorcli"  # marks a folder that may be deleted and made again
UNAVAILABLE = 69  # sysexits.h: a service or program that is needed is not there


class SetupFailed(Exception):
    """The environment could not be made; the text says why and what to do."""


def is_ready(folder: Path, name: str) -> bool:
    """Whether the environment holds what the set `name` needs, for this checkout."""
    try:
        stamp = folder / f"ready-{name}"
        newer = stamp.stat().st_mtime > (ROOT / "pyproject.toml").stat().st_mtime
        return (
            newer
            and stamp.read_text().rstrip("\n") == str(ROOT)
            and os.access(folder / "bin" / "python", os.X_OK)
        )
    except OSError:
        return False


def say(text: str) -> None:
    """A line to the user; standard output belongs to the command that follows."""
    print(f"tensorcli: {text}", file=sys.stderr, flush=True)


def create(folder: Path) -> None:
    """An empty environment in `folder`, over the remains of an unfinished one."""
    if folder.exists():
        if not (folder / OURS).exists():
            raise SetupFailed(
                f"{folder} exists and was not made by these scripts.\n"
                "Remove it, or name another folder in TENSORCLI_VENV."
            )
        shutil.rmtree(folder)
    say(f"preparing {folder} (once, about a minute)")
    folder.mkdir(parents=True)
    (folder / OURS).touch()
    try:
        venv.create(folder, with_pip=True, symlinks=True)
    except subprocess.CalledProcessError as error:
        raise SetupFailed(
            f"{sys.executable} cannot make a virtual environment with pip in it.\n"
            "On Debian and Ubuntu the package python3-venv is missing."
        ) from error


def install(folder: Path, name: str, lock: int) -> None:
    """Install the checkout, editable, with the dependencies of the set `name`."""
    log = folder / "setup.log"
    command = [
        *(str(folder / "bin" / "python"), "-I", "-m", "pip", "install", "--no-input"),
        *("--disable-pip-version-check", "--editable", f"{ROOT}{SETS[name]}"),
    ]
    with log.open("w") as output:
        # pip holds the lock too: should this process be killed, nobody disturbs its work.
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, pass_fds=(lock,)
        )
    if done.returncode:
        said = [line for line in log.read_text(errors="replace").splitlines() if "ERROR" in line]
        raise SetupFailed(
            "\n".join(
                [
                    "installing the dependencies failed.",
                    *(f"  {line}" for line in said[-3:]),
                    "Is a package index within reach (pip's settings, the network)?",
                    f"The whole output of pip: {log}",
                ]
            )
        )
    subprocess.run(
        [folder / "bin" / "python", "-I", "-m", "compileall", "-q", "engine", "tensorcli"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def prepare(folder: Path, name: str) -> None:
    """Make the environment ready for the set `name`, unless it is."""
    if is_ready(folder, name):
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with Path(f"{folder}.lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if is_ready(folder, name):
            return
        usable = any(is_stamped_here(folder, other) for other in SETS)
        for other in SETS:
            (folder / f"ready-{other}").unlink(missing_ok=True)
        if usable:
            say(f"refreshing {folder}")
        else:
            create(folder)
        install(folder, name, held.fileno())
        for included in list(SETS)[: list(SETS).index(name) + 1]:
            (folder / f"ready-{included}").write_text(f"{ROOT}\n")


def is_stamped_here(folder: Path, name: str) -> bool:
    """Whether an earlier installation for this checkout was finished, if perhaps out of date."""
    try:
        stamped = (folder / f"ready-{name}").read_text().rstrip("\n") == str(ROOT)
    except OSError:
        return False
    return stamped and os.access(folder / "bin" / "python", os.X_OK)


def main(arguments: list[str]) -> int:
    """The command: exit status 0, or 69 with the reason on standard error."""
    if not 1 <= len(arguments) <= 2 or arguments[1:] not in ([], *([name] for name in SETS)):
        print("usage: environment.py FOLDER [base|test|oracle]", file=sys.stderr)
        return 2
    folder, name = Path(arguments[0]).absolute(), (arguments[1:] or ["base"])[0]
    try:
        prepare(folder, name)
    except (SetupFailed, OSError) as error:
        say(str(error))
        return UNAVAILABLE
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
