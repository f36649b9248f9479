"""The reference folder: where the published files lie, and whether they are the ones that were checked."""

from __future__ import annotations

import hashlib
import os
import zipfile
from pathlib import Path

import numpy as np

from gflowexplainer.errors import DatasetError

VARIABLE = "GFLOWEXPLAINER_DATA"

CHECKSUMS = {
    "ba_2motifs.npz": "150823118f3b7e25d1ed370b52a320cb145faea9af4b99ae290f9852be2cc8b1",
    "ba_community.npz": "2a200acad05914e2a5f07f0231016cc45eff297f64907c540fc8582f8dac8a74",
    "ba_shapes.npz": "b8f2f4cdb85f0e921bc6428e68ae979a83c8fc191872794f0980d35ff50ba26a",
    "cora.npz": "ab5c3bfca6b97d626d49598ad8a694acb0aacd78eab45429a086b47485e60473",
    "mutagenicity.npz": "b8b1ffb1efedc52c777b5b742085bc454e25d7a73ae41d9cbe9740f18aa7ba18",
    "sst2_text.npz": "a2050c82ce8ffd4d2cc21470bb9cb36940983679166d8a1b4b71244844c3d6d1",
    "tree_cycles.npz": "81460604b19747fa5560301a75e8ba7bfec8845150a71c3b3c2201dae56a5b7f",
    "tree_grid.npz": "f94c41c94d8208c1d0291c9604e2c43c8c68a6dabd8508274362a46d6fe7c683",
    "user_item_attr.npz": "ac9486a2e5798a26deb6a7b8aead9d6c3af59bbc99748513b49c8c519f32cc70",
}


def reference_folder() -> Path | None:
    """Finds the folder with the published files.

    It is the one named by ``GFLOWEXPLAINER_DATA``; otherwise ``shared/data`` beside the checkout, which is
    looked for next to the working directory, the package, and each of their parents.

    Returns:
        The folder, or ``None`` where there is none.
    """
    named = os.environ.get(VARIABLE)
    if named:
        folder = Path(named).expanduser()
        if not folder.is_dir():
            raise DatasetError(
                f"{VARIABLE} names '{named}', which is not a folder. Correct it, or unset it to look for "
                "'../shared/data' beside the checkout."
            )
        return folder
    package = Path(__file__).resolve()
    for parent in (Path.cwd(), *Path.cwd().parents, *package.parents):
        folder = parent / "shared" / "data"
        if any((folder / file).is_file() for file in CHECKSUMS):
            return folder
    return None


def read_reference(file: str, other_way: str, folder: Path | str | None = None) -> dict[str, np.ndarray]:
    """Reads one published file after verifying its checksum; nothing in it can be a pickle.

    Args:
        file: Name of the file, a key of ``CHECKSUMS``.
        other_way: How to get the data without this file, a sentence for the error message.
        folder: Folder to read from; if ``None``, :func:`reference_folder`.

    Returns:
        The arrays of the file by name.
    """
    chosen = reference_folder() if folder is None else Path(folder)
    first_way = f"Put the file into a folder and name that folder in {VARIABLE} (or '../shared/data')"
    if chosen is None or not (chosen / file).is_file():
        where = f"in '{chosen}'" if chosen else "because there is no reference folder"
        raise DatasetError(f"'{file}' was not found {where}. {first_way}, or: {other_way}")
    path = chosen / file
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != CHECKSUMS[file]:
        raise DatasetError(
            f"'{path}' is damaged or another version: its SHA-256 is {found}, expected {CHECKSUMS[file]}. "
            f"Replace it by the published file, or: {other_way}"
        )
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise DatasetError(f"'{path}' cannot be read ({error}). {first_way}, or: {other_way}") from error
