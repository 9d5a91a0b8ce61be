"""The rewrite of faster_decode: a function that opens a JPEG image decoded, in place of PIL's `open`.

Which calls open the data set's images was not observed: all calls of the program's that open an image are changed, and
only where edits that go by names are allowed.
"""

from __future__ import annotations

import libcst as cst

from hotloop.model.safety import Safety
from hotloop.optimize.loaders.added_class import define
from hotloop.source.draft import Editor
from hotloop.source.imports import meaning
from hotloop.source.outcome import AlreadySo, Edited, Refused, Rewrite

_NAME = "open_decoded"
_FUNCTION = '''\
def open_decoded(file):
    """Open an image; a JPEG file in color is decoded at once, by a faster library than PIL's."""
    raw = file.read() if hasattr(file, "read") else open(file, "rb").read()
    try:
        if {simplejpeg}.decode_jpeg_header(raw)[2] == "YCbCr":
            return {image}.fromarray({simplejpeg}.decode_jpeg(raw, fastdct=False, fastupsample=False))
    except ValueError:
        pass  # no JPEG file, or not a whole one
    return {image}.open({io}.BytesIO(raw))
'''
_SNIPPETS = {
    "simplejpeg": "Image.fromarray(simplejpeg.decode_jpeg(raw))",
    "turbojpeg": "Image.fromarray(turbojpeg.TurboJPEG().decode(raw, pixel_format=turbojpeg.TJPF_RGB))",
    "torchvision": "torchvision.io.decode_jpeg(torchvision.io.read_file(path), mode=ImageReadMode.RGB)",
}


def rewrite_decode(source: Editor, decoder: str) -> Rewrite:
    """Change the calls of `PIL.Image.open`.

    Raises:
        CannotEdit: a file means something else by the function's name.
    """
    if decoder != "simplejpeg":
        return Refused(f"the function that is put in knows simplejpeg, not {decoder}", _SNIPPETS[decoder])
    notes: list[str] = []
    already = False
    for path in list(source.draft.files):
        already = already or any(_calls(each, _NAME) for each in source.file(path).all(cst.Call))
        number = sum(_opens(source, path, each) for each in source.file(path).all(cst.Call))
        for _ in range(number):
            call = next(each for each in source.file(path).all(cst.Call) if _opens(source, path, each))
            notes.append(f"{path}:{source.file(path).line(call)}: JPEG images are decoded by {decoder}")
            source.change(path, call, lambda call: call.with_changes(func=cst.Name(_NAME)))
        if number:
            define(source, path, _NAME, _FUNCTION)
    if notes:
        return Edited(tuple(notes), Safety.UNSAFE)
    if already:
        return AlreadySo(f"images are opened by {_NAME}()")
    return Refused(
        "the program's source has no call of PIL's Image.open with a file alone", _SNIPPETS[decoder]
    )


def _opens(source: Editor, path: str, call: cst.Call) -> bool:
    """Whether a call opens an image from a file alone, and not within the function that is put in."""
    file = source.file(path)
    plain = len(call.args) == 1 and call.args[0].keyword is None and not call.args[0].star
    if not plain or meaning(file, call.func) != "PIL.Image.open":
        return False
    function = file.enclosing(call, cst.FunctionDef)
    return function is None or function.name.value != _NAME


def _calls(call: cst.Call, name: str) -> bool:
    return isinstance(call.func, cst.Name) and call.func.value == name
