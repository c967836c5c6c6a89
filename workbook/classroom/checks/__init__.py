"""The checks of the problems: a file a subject.

A check is a function that is called with an attempt and a part. It raises `verdicts.Wrong` or
`NotAttempted`, or returns praise, None (correct) or `Facts` (read, not judged). `study.problems`
says which check belongs to which problem, and `study.verbs.check` calls it. Open first: `verdicts`,
with which every check is written, and `worker`, the process in which every attempt runs.
"""
