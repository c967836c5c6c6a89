# `check` and its friends, in every kernel of a study folder before any cell has run.
#
# IPython runs this file in the learner's namespace when a kernel starts, from its place in the
# environment, `etc/ipython/startup/`. Outside a study folder it loads nothing. It has no
# docstring: that would become the learner's `__doc__`.


def _workbook_startup(learners: dict) -> None:
    import os
    from contextlib import suppress

    # A kernel must start whatever happens here: the notebook's import cell then says what is wrong.
    with suppress(Exception):
        here = os.getcwd()
        while not os.path.isdir(os.path.join(here, ".workbook")):  # as `study.progress.current`
            here, inside = os.path.dirname(here), here
            if here == inside:
                return
        import workbook

        for name in workbook.__all__:
            learners.setdefault(name, getattr(workbook, name))
        from workbook.classroom.study import solutions

        solutions.make_ready()


_workbook_startup(globals())
del _workbook_startup
