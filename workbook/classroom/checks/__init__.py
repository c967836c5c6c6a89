"""The checks of the problems: a file a subject.

A check is called with an attempt, and with its part if the problem is a written one. It raises
`verdicts.Wrong` or `NotAttempted`, or returns praise, None (correct) or `Facts` (read, not judged).
`by_problem` says which check belongs to which problem. What all of them share is in `machinery`.

A finding has a weight: what fails in ordinary use is *wrong*; what fails only a corner case of the
handout, or is not from scratch, is *almost*. A learner's prose is never judged.
"""
