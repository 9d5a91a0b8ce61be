"""A program that changes, adds and removes files in every way there is; one line for each, how it went.

Run as `python ways.py FOLDER`. FOLDER holds what `setups.furnish` puts there. A way passes where the program sees
what it wrote; what is there afterwards for everybody else is for the tests to judge.
"""

import ctypes
import json
import mmap
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import zipfile

FOLDER = sys.argv[1]
WAYS = {}


def way(function):
    WAYS[function.__name__] = function
    return function


def at(name):
    return os.path.join(FOLDER, name)


def read(name):
    with open(at(name)) as file:
        return file.read()


@way
def open_new():
    with open(at("new"), "w") as file:
        file.write("new")
    return read("new") == "new"


@way
def open_over():
    with open(at("over"), "w") as file:
        file.write("changed")
    return read("over") == "changed"


@way
def open_append():
    with open(at("append"), "a") as file:
        file.write("+")
    return read("append") == "append+"


@way
def open_update():
    with open(at("update"), "r+") as file:
        file.write("UP")
    return read("update") == "UPdate"


@way
def descriptor():
    handle = os.open(at("descriptor"), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(handle, b"x")
    os.close(handle)
    return read("descriptor") == "x"


@way
def path_write():
    pathlib.Path(at("path_write")).write_text("x")
    return pathlib.Path(at("path_write")).read_text() == "x"


@way
def touch():
    pathlib.Path(at("touched")).touch()
    return os.path.exists(at("touched"))


@way
def truncate():
    os.truncate(at("truncate"), 1)
    return os.path.getsize(at("truncate")) == 1


@way
def remove():
    os.remove(at("remove"))
    return not os.path.exists(at("remove")) and "remove" not in os.listdir(FOLDER)


@way
def rename():
    os.rename(at("rename"), at("renamed"))
    return read("renamed") == "rename" and not os.path.exists(at("rename"))


@way
def replace():
    with open(at("replace.tmp"), "w") as file:
        file.write("x")
    os.replace(at("replace.tmp"), at("replace"))
    return read("replace") == "x"


@way
def make_folders():
    os.makedirs(at("a/b/c"))
    return os.path.isdir(at("a/b/c"))


@way
def remove_tree():
    shutil.rmtree(at("tree"))
    return not os.path.exists(at("tree"))


@way
def rename_folder():
    os.rename(at("folder"), at("folder2"))
    return read("folder2/inside") == "inside"


@way
def copy_over():
    shutil.copy(at("copy_from"), at("copy_over"))
    return read("copy_over") == "copy_from"


@way
def symbolic_link():
    os.symlink("over", at("symlink"))
    return os.readlink(at("symlink")) == "over"


@way
def hard_link():
    os.link(at("hard"), at("hard2"))
    with open(at("hard2"), "a") as file:
        file.write("+")
    return read("hard") == "hard+"


@way
def named_pipe():
    os.mkfifo(at("pipe"))
    return os.path.exists(at("pipe"))


@way
def mode():
    os.chmod(at("mode"), 0o600)
    return os.stat(at("mode")).st_mode & 0o777 == 0o600


@way
def mode_of_descriptor():
    with open(at("mode2")) as file:
        os.fchmod(file.fileno(), 0o600)
    return os.stat(at("mode2")).st_mode & 0o777 == 0o600


@way
def times():
    os.utime(at("times"), (1, 1))
    return os.stat(at("times")).st_mtime == 1


@way
def append_through_link():
    with open(at("link"), "a") as file:
        file.write("+")
    return read("link") == "linked+"


@way
def memory_map():
    with open(at("mapped"), "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[0:1] = b"M"
        mapped.flush()
    return read("mapped") == "Mapped"


@way
def database():
    connection = sqlite3.connect(at("runs.db"))
    connection.execute("insert into runs values (2)")
    connection.commit()
    num = connection.execute("select count(*) from runs").fetchone()[0]
    connection.close()
    return num == 2


@way
def shell():
    subprocess.run(["sh", "-c", 'echo x > "$0"/shell; echo x >> "$0"/over2', FOLDER], check=True, stderr=-3)
    return "x" in read("over2")


@way
def other_python():
    code = "import sys; open(sys.argv[1], 'w').write('x')"
    subprocess.run([sys.executable, "-I", "-S", "-c", code, at("child")], check=True, stderr=-3)
    return read("child") == "x"


@way
def c_library():
    libc = ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    handle = libc.fopen(os.fsencode(at("c_library")), b"w")
    if not handle:
        raise PermissionError("fopen")
    libc.fputs(b"x", ctypes.c_void_p(handle))
    libc.fclose(ctypes.c_void_p(handle))
    return read("c_library") == "x"


@way
def fork():
    child = os.fork()
    if child == 0:
        try:
            with open(at("forked"), "w") as file:
                file.write("x")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    return read("forked") == "x"


@way
def temporary_then_replace():
    with tempfile.NamedTemporaryFile("w", dir=FOLDER, delete=False) as file:
        json.dump([1], file)
    os.replace(file.name, at("metrics.json"))
    return read("metrics.json") == "[1]"


@way
def archive():
    with zipfile.ZipFile(at("archive.zip"), "a") as file:
        file.writestr("new", "x")
    return len(zipfile.ZipFile(at("archive.zip")).namelist()) == 2


@way
def relative_to_descriptor():
    folder = os.open(FOLDER, os.O_RDONLY)
    handle = os.open("relative", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=folder)
    os.write(handle, b"x")
    os.close(handle)
    os.unlink("remove2", dir_fd=folder)
    os.close(folder)
    return read("relative") == "x" and not os.path.exists(at("remove2"))


@way
def changed_folder():
    before = os.getcwd()
    os.chdir(FOLDER)
    try:
        os.mkdir("deeper")
        os.chdir("deeper")
        with open("../from_below", "w") as file:
            file.write("x")
        name = os.path.basename(os.getcwd())
    finally:
        os.chdir(before)
    return name == "deeper" and read("from_below") == "x"


for name, function in WAYS.items():
    try:
        outcome = "ok" if function() else "not seen"
    except Exception as error:
        outcome = f"error {type(error).__name__}: {error}"
    sys.stdout.write(f"{name}: {ascii(outcome)[1:-1]}\n")
    sys.stdout.flush()
