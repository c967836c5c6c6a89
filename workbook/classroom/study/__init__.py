"""The learner's side: the verbs of the notebooks, and a copy of these to work in.

Open first: `verbs`, which notebooks call: `check`, `tick`, `hint`, `reveal`, `answer` and
`look_up`. `answers` stores written answers in the notebook itself. `copy` makes the learner's own
notebooks in `study/`, `update` brings them up to date, `progress` counts what is solved there,
`records` stores that and all else that is noted, and `solutions` keeps that code as files. `lab`
opens JupyterLab on them, and `notebooks` runs the worked ones and stores them in normal form.
"""
