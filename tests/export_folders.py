"""Folders of notebooks for the tests of the export, written as JupyterLab stores them."""

import base64
import json
from io import BytesIO

from PIL import Image

from workbook.classroom.export.clean import Cleaner
from workbook.classroom.study.answers import MIME
from workbook.classroom.study.progress import MARK, Progress


def record(problem, part, text, **more):
    """What `answer` stores."""
    usual = {"edition": "2025", "profile": "laptop", "corpora": [], "stand_in": False}
    rest = {"figure": False, "device": None}
    return {"problem": problem, "part": part, "text": text, **usual, **rest, **more}


def answered(problem, part, text, *shown, source="answer(...)", **more):
    """A cell that answers, and shows some outputs before."""
    data = {"text/plain": text, "text/markdown": text, MIME: record(problem, part, text, **more)}
    output = {"output_type": "display_data", "data": data, "metadata": {}}
    return cell(source, *shown, output, role="answer", problem=problem, part=part)


def cell(source, *outputs, **about):
    """A code cell; `about` is the workbook's own metadata."""
    about = {key: value for key, value in about.items() if value}
    metadata = {"workbook": about} if about else {}
    common = {"cell_type": "code", "id": "x", "execution_count": 1, "metadata": metadata}
    return {**common, "source": source, "outputs": list(outputs)}


def shown(alt=None, **data):
    """An output; `html=...` stands for text/html, and so on."""
    mimes = {"png": "image/png", "html": "text/html", "markdown": "text/markdown"}
    named = {mimes.get(key, f"text/{key}"): value for key, value in data.items()}
    notes = {"image/png": {"alt": alt}} if alt else {}
    return {"output_type": "display_data", "data": named, "metadata": notes}


def printed(text):
    return {"output_type": "stream", "name": "stdout", "text": text}


def png(width=60, height=40, colour="navy"):
    """A picture in base64."""
    drawn = BytesIO()
    Image.new("RGB", (width, height), colour).save(drawn, "png")
    return base64.b64encode(drawn.getvalue()).decode()


def notebook(path, *cells):
    """A notebook file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells)}
    path.write_text(json.dumps(content), "utf-8")
    return path


def learner(folder, *cells, passed=None, best="correct"):
    """A learner's folder: one notebook, and the code that passed by problem."""
    notebook(folder / "01_unicode.ipynb", *cells)
    (folder / MARK).mkdir(exist_ok=True)
    for problem, source in (passed or {}).items():
        with Progress(folder).changing(problem, None) as part:
            part.reach(best)
            part.source = source
    return folder


def cleaned(text, kind="markdown"):
    """The blocks that the export makes of a text."""
    return Cleaner().blocks(kind, text, "here")
