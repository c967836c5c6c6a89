"""What serves the learner: problems, checks, the study copy, views, the write-up, the command.

Only this folder imports from this folder; the chapters beside it do without.
"""
