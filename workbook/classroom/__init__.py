"""What serves the learner: problems, checks, views, the study copy, the write-up, the command.

Only this folder imports from this folder; the chapters beside it do without. Open first:
`problems`, with one record for each problem (what is handed in, hints, what an answer must
contain). Each room imports those named before it: problems, panels, checks, views, study, mine,
export, cli.
"""
