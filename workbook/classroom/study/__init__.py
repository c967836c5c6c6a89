"""The learner's side: the 38 problems, the verbs of the notebooks, and a copy to work in.

Open first: `problems`, with one record for each problem (what is handed in, hints, what an answer
must contain, where its check is). `verbs` are what notebooks call: `check`, `tick`, `hint`,
`reveal`, `answer` and `look_up`. `answers` stores written answers in the notebook itself. `copy`
makes the learner's own notebooks in `study/`, `update` brings them up to date, `progress` counts
what is solved there, `records` stores that and all else that is noted, `solutions` keeps that code
as files, and `hardening` plants a mistake into a copy of it, for the learner to find. `lab` opens
JupyterLab on them, and `notebooks` runs the worked ones and stores them in normal form.
"""
