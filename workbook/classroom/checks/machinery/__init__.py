"""What all checks share, and how an attempt reaches its check.

Open first: `judging`, which is asked for a verdict and reaches it in a process of its own
(`worker`, to which `transfer` carries the attempt, under the limits of `timeout`). With `verdicts`
every check is written: what is wrong, and what cannot be judged. `engine` runs an exercise: cases,
a right reference, and mistakes as edits of it; `mutants` are mistakes that nobody wrote down.
`calling` passes the handout's arguments to a learner's parameters, `modules` and `tensors` know
layers and numbers, `from_scratch` sees who did the work, and `watched` runs a script.
"""
