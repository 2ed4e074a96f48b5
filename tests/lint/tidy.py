"""Runs clang-tidy over the rooms' sources, as configured in a build folder.

Usage: tidy.py BUILD_FOLDER [--changed | PATH...]; paths restrict it to sources below them,
--changed to those that differ from the remote's main branch, or else from the commit before.
A source whose text, headers of ours and checks are those of an earlier clean run is skipped; the
marks lie in KILN_DEPS_DIR (default ~/.cache/kiln).
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

TIDY = "clang-tidy-19"
ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = ("formats", "engine", "builder", "calibration", "plugins", "apps")
MARKS = pathlib.Path(os.environ.get("KILN_DEPS_DIR", "~/.cache/kiln")).expanduser() / "tidy"


def sources(build, only):
    """Yields (path relative to the root, compile command, its folder)."""
    wanted = [(ROOT / path).resolve() for path in only or ["."]]
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["file"])
        path = file.relative_to(ROOT)
        if path.parts[0] in ROOMS and any(file.is_relative_to(place) for place in wanted):
            yield path, shlex.split(entry["command"]), entry["directory"]


def changed():
    """Paths that differ from where this branch left the remote's, or from the commit before."""
    def git(*words):
        run = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
        return run.stdout.split()

    head = git("rev-parse", "HEAD")
    base = git("merge-base", "HEAD", "origin/main")
    if not base or base == head:
        base = git("rev-parse", "--verify", "HEAD~")
    return git("diff", "--name-only", "--diff-filter=d", *base)


def compiler_arguments(command):
    """The command without launchers, output and -c."""
    start = next(i for i, word in enumerate(command) if word.startswith("-"))
    arguments, skip = [], False
    for word in command[start:]:
        if not skip and word not in ("-c", "-o"):
            arguments.append(word)
        skip = word == "-o"
    return arguments


def mark_of(command, folder):
    """Names the mark of a clean run: hashes all that the result depends on, but system headers."""
    arguments = compiler_arguments(command)
    compiler = "clang-19" if command[-1].endswith(".c") else "clang++-19"
    rule = subprocess.run([compiler, *arguments, "-MM", "-MT", "x"], cwd=folder,
                          capture_output=True, text=True, check=True).stdout
    digest = hashlib.sha256((ROOT / ".clang-tidy").read_bytes())
    digest.update(" ".join(a.replace(str(ROOT), "") for a in arguments).encode())
    for name in rule.replace("\\\n", " ").split()[1:]:
        digest.update(pathlib.Path(folder, name).read_bytes())
    return MARKS / digest.hexdigest()


def check(build, source):
    """Returns (path, skipped, faults as text or None)."""
    path, command, folder = source
    try:
        mark = mark_of(command, folder)
    except subprocess.CalledProcessError as error:
        return path, False, error.stderr
    if mark.exists():
        return path, True, None
    run = subprocess.run([TIDY, "-p", build, "--quiet", ROOT / path,
                          "--extra-arg=-Wno-unknown-warning-option"],  # g++'s are unknown to it
                         capture_output=True, text=True, cwd=ROOT)
    if run.returncode == 0:
        mark.touch()
        return path, False, None
    return path, False, run.stdout or run.stderr


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    MARKS.mkdir(parents=True, exist_ok=True)
    # Generated headers must exist before a source that includes them can be read.
    subprocess.run(["cmake", "--build", build, "--target", "kiln_generated"], check=True,
                   stdout=subprocess.DEVNULL)
    only = sys.argv[2:]
    if only == ["--changed"]:
        only = changed() or ["."]
    found = list(sources(build, only))
    skipped = faulty = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, was_clean, faults in pool.map(lambda source: check(build, source), found):
            skipped += was_clean
            if faults is not None:
                faulty += 1
                print(f"{path}:\n{faults}", flush=True)
    print(f"clang-tidy: {len(found)} sources, {skipped} unchanged since clean, {faulty} with faults")
    return 1 if faulty or not found and not only else 0


if __name__ == "__main__":
    sys.exit(main())
