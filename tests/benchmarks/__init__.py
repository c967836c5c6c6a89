"""Our code timed beside other libraries, on one core or one machine: `make bench`.

From the root of the repository, `PYTHONPATH=tests python -m benchmarks tokenizer --help` says more.
`proofs.py` holds what the benches rest on, such as that all write the same ids. Figures go to
`data/timings/`, outside git; `make bench RECORD=1` writes `data/bench/`, from which texts and
notebooks quote, and the README's table.
"""
