"""`workbook experiments run | list | show`: the experiments on the command line."""

import argparse

from workbook import config
from workbook.training import presets


def add_to(commands: argparse._SubParsersAction) -> None:
    """Nothing; the parser knows the commands on experiments."""
    experiments = commands.add_parser(
        "experiments", help="sweeps and ablations: run what is missing, show what came out"
    )
    kinds = experiments.add_subparsers(metavar="run | list | show", required=True)
    run = kinds.add_parser(
        "run",
        help="make the runs that have no record; goes on where it was stopped",
        description="Make the runs that have no record. Goes on where it was stopped.",
    )
    run.add_argument("names", metavar="NAME", nargs="*", help="see `list`; default: all")
    run.add_argument(
        "--workers",
        type=presets.between(1, presets.MOST_WORKERS),
        metavar="N",
        help="processes of one thread; default: a core each",
    )
    run.add_argument(
        "--dry-run", action="store_true", help="only say what is needed; status 1: not all is here"
    )
    run.set_defaults(run=run_them)
    kinds.add_parser("list", help="the experiments, and how many of their runs there are")
    listing = kinds.choices["list"]
    listing.set_defaults(run=list_them)
    show = kinds.add_parser("show", help="a table of the runs of an experiment")
    show.add_argument("names", metavar="NAME", nargs="+", help="see `list`")
    show.set_defaults(run=show_them)
    for parser in (run, listing, show):
        parser.add_argument(
            "--scale",
            metavar="SCALE",
            help="laptop, full or full-cpu; default: the profile, WORKBOOK_PROFILE",
        )


def plans(names: list[str], scale: str | None) -> dict:
    """The plans of these experiments, of all for no name. Raises: ValueError for an unknown one."""
    from workbook.experiments import studies
    from workbook.experiments.studies import STUDIES

    size = studies.scale_named(scale or config.profile().name, config.edition())
    if unknown := [name for name in names if name not in STUDIES]:
        raise ValueError(f"{unknown[0]!r} is no experiment; there are {', '.join(STUDIES)}")
    return {name: STUDIES[name].plan(size) for name in names or STUDIES}


def run_them(options: argparse.Namespace) -> int:
    import os

    from workbook.experiments import dry_run, records
    from workbook.experiments import plans as experiments
    from workbook.training import devices

    asked = plans(options.names, options.scale)
    one_device = devices.pick_device().type != "cpu" and options.workers is None
    workers = None if one_device else options.workers or os.cpu_count()
    if options.dry_run:
        return dry_run.tell(asked, workers)
    if one_device:
        found = experiments.run(asked)  # one after the other
    else:
        with experiments.crew(workers) as executor:
            found = experiments.run(asked, executor)
    for name, results in found.items():
        print(f"{name}: {len(results)} runs in {records.folders()[0]}")
    return 0


def list_them(options: argparse.Namespace) -> None:
    from workbook.experiments.studies import STUDIES

    for name, stage in stages([], options.scale).items():
        print(f"{name:16} {len(stage.so_far()):3} runs{'' if stage.over else ', more to come':14}"
              f" {STUDIES[name].question}")  # fmt: skip


def show_them(options: argparse.Namespace) -> None:
    from workbook.experiments import records

    for name, stage in stages(options.names, options.scale).items():
        found, missing = stage.so_far(), len(stage.missing())
        print(name, end="\n\n")
        if found:
            print(records.table(found).to_string(float_format="{:,.4g}".format), end="\n\n")
        if missing:
            print(f"{missing} runs are missing before it can go on; `make experiments`\n")


def stages(names: list[str], scale: str | None) -> dict:
    """The experiments, each as far as its records lead."""
    from workbook.experiments.plans import Stage

    found = {name: Stage(plan) for name, plan in plans(names, scale).items()}
    for stage in found.values():
        stage.advance()
    return found
