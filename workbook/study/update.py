"""Study notebooks that are older than their originals: found, and brought up to date on request.

An update lays the cells of a new copy in their order, and puts in what the learner has: solutions
and answers, cells that they changed, cells of their own. A cell of a copy notes the digest of its
original text, which shows what was changed on which side. Nothing typed is dropped: if both sides
changed a cell, the learner's version follows the new one.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, takewhile
from pathlib import Path
from uuid import uuid4

import nbformat
from nbformat import NotebookNode

from workbook.files import atomic_write, changed, file_state, locked, notebooks_in
from workbook.study import copy, notebooks
from workbook.study.notebooks import ONCE, digest
from workbook.study.progress import MARK, nearest

Place = tuple[str | None, str, str | None]  # problem, role and part of a cell


@dataclass(frozen=True)
class Seen:
    """A cell, and what is known of the original that it was made from."""

    cell: NotebookNode
    place: Place | None  # None: it does not say
    original: str | None  # the note that a copy gets when it is made; None: not known

    @property
    def is_stub(self) -> bool:
        return self.place is not None and self.place[1] in copy.STUBS

    @property
    def is_changed(self) -> bool:
        """Whether the learner changed the cell, as far as anybody can know."""
        return self.original is None or digest(self.cell) != self.original[:8]

    @property
    def identity(self) -> tuple | None:
        """A key that is unique in a fresh copy, and that a pasted cell shares with its original."""
        if self.is_stub or self.original is None:
            return self.place if self.is_stub else None
        return self.place, self.original


def outdated(folder: str | Path) -> dict[Path, str]:
    """Find the notebooks of a study folder that are older than their originals.

    The values say what is new in the original, such as "2 cells of text are new". Files that are
    not notebooks, or not the workbook's, are skipped.
    """
    found = {}
    for path in notebooks_in(folder):
        try:
            metadata = json.loads(path.read_bytes())["metadata"]
            if worked := _worked(path, metadata):
                original = copy.fresh(worked)
                if metadata.get("workbook") != original.metadata.workbook:
                    new = _of_copy(original.cells)
                    found[path] = _news(_read(path, new)[1], new)
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            continue  # JupyterLab and the export say what is wrong with it
    return found


def notices(folder: str | Path) -> list[str]:
    """Say for each notebook that is older than its original, in one line, what is new there."""
    return [
        f"{path.parent.name}/{path.name} is older than its original: {news}. `workbook study"
        " --update` brings it up to date and keeps what you wrote."
        for path, news in outdated(folder).items()
    ]


def update(names: Sequence[str] = (), folder: str | Path | None = None) -> None:
    """Bring notebooks of a study folder up to date; print what became of each.

    Each is first backed up in `.workbook/backup/` of the study folder.

    Arguments:
        names: such as "02_bpe", or paths; default: all that are older than their originals.
        folder: the study folder; default: the nearest one.

    Raises: ValueError if a notebook is missing, cannot be read, or is not the workbook's.
    """
    folder = Path(folder or nearest())
    chosen = [_named(folder, name) for name in names]
    folders = {path.parent for path in chosen} or {folder}
    older = {path: news for each in folders for path, news in outdated(each).items()}
    for path in dict.fromkeys(chosen or older):
        if path in older:
            print(_update(path, older[path]))
        else:
            print(f"{path.parent.name}/{path.name} is up to date.")
    if not (chosen or older):
        print(f"There is nothing to update in {folder}.")


def _named(folder: Path, name: str) -> Path:
    """Find the notebook that the learner names, by its name or a path."""
    path = Path(name if name.endswith(".ipynb") else f"{name}.ipynb")
    if path.name == str(path):
        path = folder / path
    if not path.is_file():
        there = ", ".join(each.stem for each in notebooks_in(path.parent))
        known = f"pick from {there}" if there else "`workbook lab` creates them"
        raise ValueError(f"there is no notebook {path.stem!r} in {path.parent}; {known}")
    if not _worked(path, notebooks.read(path).metadata):
        raise ValueError(
            f"{path} is not one of the workbook's notebooks, so there is nothing to update it from"
        )
    return path


def _worked(path: Path, metadata: dict) -> Path | None:
    """Find the worked notebook that a study notebook, of whatever name, was made from."""
    about = metadata.get("workbook")
    name = about.get("notebook", path.stem) if isinstance(about, dict) else path.stem
    found = (worked for worked in notebooks.find() if worked.stem == name)
    return next((worked for worked in found if worked.resolve() != path.resolve()), None)


def _update(path: Path, news: str) -> str:
    """Update one notebook, whole or not at all; return what to say about it."""
    with locked(path.parent / MARK):
        before, stored = file_state(path), path.read_bytes()
        original = copy.fresh(_worked(path, json.loads(stored)["metadata"]))
        new = _of_copy(original.cells)
        study, mine = _read(path, new)
        merged = _merge(mine, new)
        study.cells = merged.cells
        study.metadata["workbook"] = original.metadata.workbook
        try:
            nbformat.validate(study)
        except nbformat.ValidationError as error:
            reason = str(error).partition("\n")[0]
            raise ValueError(
                f"{path} is not a valid notebook ({reason}); open it in JupyterLab and save it"
            ) from error
        backup = copy.backup_path(path.parent, path.stem)
        with atomic_write(backup, "wb") as file:
            file.write(stored)
        if file_state(path) != before:  # JupyterLab saved it meanwhile
            raise changed(path)
        notebooks.write(path, study)
    return (
        f"{path.parent.name}/{path.name} is up to date now: {news}. {merged}"
        f" What you had is in {backup}. {copy.RELOAD}"
    )


def _read(path: Path, new: list[Seen]) -> tuple[NotebookNode, list[Seen]]:
    """Read a learner's notebook, and see its cells beside those of a new copy."""
    stored, study = json.loads(path.read_bytes()), notebooks.read(path)
    ids = [cell.get("id") for cell in stored.get("cells", [])]  # reading makes up what is missing
    if len(ids) != len(study.cells):  # in formats before 4
        ids = [None] * len(study.cells)
    counted = Counter(ids)
    keeps_id = [name is not None and counted[name] == 1 for name in ids]
    return study, _of_learner(study.cells, keeps_id, new)


def _place(cell: NotebookNode) -> Place | None:
    about = cell.metadata.get("workbook", {})
    return (about.get("problem"), about["role"], about.get("part")) if about.get("role") else None


def _of_copy(cells: list[NotebookNode]) -> list[Seen]:
    """See the cells of a fresh copy."""
    return [Seen(cell, _place(cell), cell.metadata.workbook.original) for cell in cells]


def _of_learner(cells: list[NotebookNode], keeps_id: list[bool], new: list[Seen]) -> list[Seen]:
    """See the learner's cells; `keeps_id` says which still have the id that they came with.

    Copies that earlier versions made have no notes of the original texts, and some programs drop
    metadata. An id still says where a cell belongs, and ends in the digest of the original where
    a problem has more than one such cell.
    """
    by_id = {seen.cell.id: seen for seen in new}
    found = []
    for cell, has_id in zip(cells, keeps_id, strict=True):
        place, original = _place(cell), cell.metadata.get("workbook", {}).get("original")
        twin = by_id.get(cell.id) if has_id else None
        if place is None and twin:
            place = twin.place
        if place and original is None and has_id:
            made_from = re.fullmatch(r".+-([0-9a-f]{8}(?:-\d+)?)", cell.id)
            if made_from and not (place[0] and place[1] in ONCE):
                original = made_from[1]
            elif twin and cell.source == twin.cell.source.replace(", figure=None", ""):
                original = digest(cell)  # the empty answer of earlier versions
        found.append(Seen(cell, place, original))
    return found


def _matches(mine: list[Seen], new: list[Seen]) -> dict[int, int]:
    """Find the places of the learner's cells in the new copy: by index there, the index here."""
    matched: dict[int, int] = {}
    free = dict(enumerate(new))
    # Texts come second: a program may have dropped what else there was.
    for key in (lambda seen: seen.identity, lambda seen: digest(seen.cell)):
        alike = defaultdict(list)
        for index, seen in enumerate(mine):
            if index not in matched and (found := key(seen)) is not None:
                alike[found].append(index)
        for slot, seen in list(free.items()):
            if indices := alike[key(seen)]:
                # A cell that was pasted or split off got another id.
                same = (index for index in indices if mine[index].cell.id == seen.cell.id)
                index = next(same, indices[0])
                indices.remove(index)
                matched[index] = slot
                del free[slot]
    # Of the rest, cells between the same neighbours and with the same place are one cell, changed.
    here = -1
    for index, seen in enumerate(mine):
        if index in matched:
            here = matched[index]
        elif seen.place:
            gap = takewhile(free.__contains__, range(here + 1, len(new)))
            slot = next((slot for slot in gap if new[slot].place == seen.place), None)
            if slot is not None:
                matched[index] = here = slot
                del free[slot]
    return matched


@dataclass
class Merged:
    """The cells of an updated notebook, and how many of them are the learner's."""

    cells: list[NotebookNode]
    kept: int  # cells that the learner wrote or changed
    below: int  # of these, versions of a cell that is new
    instead: int  # of these, solutions and answers whose stub is new

    def __str__(self) -> str:
        if not self.kept:
            return "You had changed no cell."
        said = f"{_cells(self.kept)} that you wrote or changed {_are(self.kept)} kept"
        if self.below:
            said += f", {self.below} of them below the new version of the cell"
        if self.instead:
            said += f", {self.instead} in place of a new stub"
        return f"{said}."


def _merge(mine: list[Seen], new: list[Seen]) -> Merged:
    """Lay the cells of the new copy in their order, with what the learner has in and after them."""
    matched = _matches(mine, new)
    owners = {mine[index].identity: index for index in matched}
    taken: dict[int, NotebookNode] = {}
    versions, added = defaultdict(list), defaultdict(list)
    kept, instead, here = 0, 0, -1  # -1: before the first
    for index, seen in enumerate(mine):
        slot = matched.get(index)
        is_added = seen.identity and owners.setdefault(seen.identity, index) != index
        if slot is None:
            if seen.is_changed or is_added:
                # A second part of a stub still is the learner's work on that problem.
                is_part = is_added and seen.is_stub and owners[seen.identity] in matched
                added[here].append(seen.cell if is_part else _own(seen.cell))
                kept += 1
            continue
        here = slot
        if digest(seen.cell) == digest(new[slot].cell):
            taken[slot] = seen.cell
        elif seen.is_changed or is_added:
            kept += 1
            if seen.is_stub or seen.original == new[slot].original:
                taken[slot] = seen.cell
                instead += seen.original not in (new[slot].original, None)
            else:
                versions[slot].append(_own(seen.cell))
    _give_ids([*chain(*versions.values(), *added.values())], {seen.cell.id for seen in new})
    cells = added[-1]
    for slot, seen in enumerate(new):
        cells.append(_marked(taken.get(slot, seen.cell), seen.cell))
        cells += versions[slot] + added[slot]
    return Merged(cells, kept, sum(map(len, versions.values())), instead)


def _own(cell: NotebookNode) -> NotebookNode:
    """Make a cell the learner's own, about which the workbook knows nothing."""
    cell.metadata.pop("workbook", None)
    if copy.YOUR_TURN in (tags := cell.metadata.get("tags", [])):
        cell.metadata["tags"] = [tag for tag in tags if tag != copy.YOUR_TURN]
    return cell


def _marked(cell: NotebookNode, new: NotebookNode) -> NotebookNode:
    """Give a learner's cell the id, the notes and the tags of the one that it replaces.

    What else is in its metadata, such as that it is folded, stays.
    """
    cell.id, cell.metadata["workbook"] = new.id, new.metadata.workbook
    if tags := {*cell.metadata.get("tags", []), *new.metadata.get("tags", [])}:
        cell.metadata["tags"] = sorted(tags)
    return cell


def _give_ids(cells: list[NotebookNode], used: set[str]) -> None:
    """Give another id to each of the learner's own cells whose id is used."""
    for cell in cells:
        if cell.id in used:
            cell.id = str(uuid4())
        used.add(cell.id)


def _news(mine: list[Seen], new: list[Seen]) -> str:
    """Say what is new in a copy of the original, or else what is gone from it."""
    texts = {digest(seen.cell) for seen in mine}
    known = {(seen.place, seen.original) for seen in mine}
    come = [
        seen
        for seen in new
        if (seen.place, seen.original) not in known
        and digest(seen.cell) not in texts
        # If a stub has no note, nobody can tell whether the learner changed it or we did.
        and not (seen.is_stub and (seen.place, None) in known)
    ]
    if come:
        code = sum(seen.cell.cell_type == "code" for seen in come)
        text = len(come) - code
        kinds = f"text and {code} of code" if text and code else "text" if text else "code"
        return f"{_cells(text or code)} of {kinds} {_are(len(come))} new"
    originals = {seen.identity for seen in new}
    gone = sum(seen.original is not None and seen.identity not in originals for seen in mine)
    if gone:
        return f"{_cells(gone)} {_are(gone)} gone"
    return "its cells are in a different order or marked differently"


def _cells(count: int) -> str:
    return f"{count} cell" + "s" * (count != 1)


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
