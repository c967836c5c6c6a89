"""What checks signatures under pytest: beartype, for which an int is a float, as for Python."""

from beartype import BeartypeConf, beartype

typechecked = beartype(conf=BeartypeConf(is_pep484_tower=True))
