# make lab        study: JupyterLab on your own copy of the notebooks (PORT=8890 picks the port)
# make check      while you work: lint and the quick tests, a good minute
# make test       all tests: lint, unit tests, every notebook
# make writeup    build/writeup.pdf from the answers that you saved in study/ (NAME="Ada Lovelace";
#                 EDITION=2026; FOLDER=notebooks: from the worked notebooks)
# make site       build/site: read-only pages of the worked notebooks, from their stored outputs
# make notebooks  run the worked notebooks again and store their outputs (NAMES=02_bpe: only that)
# make bench      tokenizers, training and generation timed beside other libraries (FILE=text.txt:
#                 tokenizers alone, on your text; RECORD=1: into data/bench/ and README.md)
# make experiments  the runs of chapter 7 that are missing in data/runs: a night if all are
# make gpu        on a machine with a GPU: its tests, our trainer timed on it, and the runs of
#                 chapter 7 at the course's size; each is done once (MINUTES=50: stop after that)
# make stress     what `make test` leaves out or only samples: random strings, every edit and mutant
#                 of the checks, runs killed at random, torchrun, torch.compile, all notebooks in a
#                 large profile (STRESS=100: even more often); then the notebooks and all that
#                 trains, in float32 and in bfloat16, on one thread and on four: over an hour
# make newest     all tests with the newest release of every library, in a clone without .venv: CI's
#                 weekly job. Notebooks must run; what they show may differ from what is stored
# make lint       ruff and mypy; tokens of code beside their caps
#
# The first call creates .venv (PYTHON=/path/to/python3.12 picks the Python); later ones reuse it.

.PHONY: lab check test writeup site notebooks bench experiments gpu stress newest trained lint \
	suitable
.DEFAULT_GOAL := lab

# The newest suitable Python. Each is run to find out: a name on PATH may be a stub.
PYTHON ?= $(shell for python in python3.13 python3.12 python3.11 python3; do \
	$$python .ci/suitable.py >/dev/null 2>&1 && break; done; echo $$python)
answer = $(shell "$(PYTHON)" .ci/suitable.py 2>/dev/null)
bin := .venv/bin
nbval := --nbval --nbval-sanitize-with tests/sanitize.cfg --nbval-cell-timeout=3600
stamp := .venv/complete
install = -c constraints.txt -e ".[test]"
# Copied into the environment, even by an editable install.
installed := $(wildcard $(addprefix workbook/classroom/jupyter/,\
	workbook_startup.py overrides.d/*.json labextension/*.* labextension/schemas/*/*.json))
before := .venv/lib/*/site-packages/workbook-*.dist-info # the package's first name

# The stamp holds the folder it was made in: an environment that was moved, or whose Python is
# gone, does not count.
ifneq (here,$(shell $(bin)/python -c \
	"import os; print('here' if open('$(stamp)').read() == os.getcwd() else '')" 2>/dev/null))
$(shell rm -f $(stamp))
endif

lab: $(stamp)
	@exec $(bin)/python -m workbook lab $(if $(PORT),--port "$(PORT)")

check: $(stamp) lint
	@OMP_NUM_THREADS=1 $(bin)/python -m pytest workbook tests -m "not slow" \
		-n 2 --dist loadfile -q

# Two workers, so one thread each: threads that wait for each other's cores cost far more than they
# gain. Files start in the order that tests/conftest.py sets.
test: $(stamp) lint
	@OMP_NUM_THREADS=1 $(bin)/python -m pytest workbook tests notebooks \
		-n 2 --dist loadfile --no-loadscope-reorder --durations=20 $(nbval)

writeup: $(stamp)
	@$(bin)/python -m workbook export $(if $(FOLDER),"$(FOLDER)") \
		$(if $(EDITION),--edition "$(EDITION)") $(if $(NAME),--name "$(NAME)")

site: $(stamp)
	@$(bin)/python docs/site/build.py $(NAMES)

notebooks: $(stamp)
	@$(bin)/python -m workbook notebooks $(NAMES)

# A rival that cannot be installed here is left out, with a line.
bench: $(stamp)
	@$(bin)/python -c "import fastokens, gigabpe, gigatoken, rustbpe" 2>/dev/null || \
		$(bin)/python -m pip install -qq --disable-pip-version-check -c constraints.txt \
		-e ".[bench]" || true
	@$(bin)/python -m pytest -q tests/benchmarks/proofs.py tests/benchmarks/measure.py
	@for bench in $(if $(FILE),'tokenizer "$(FILE)"',tokenizer short sweep train generate); do \
		eval "PYTHONPATH=tests $(bin)/python -m benchmarks $$bench $(if $(RECORD),--record)" \
		|| exit 1; done
	@$(if $(RECORD),PYTHONPATH=tests $(bin)/python -m benchmarks readme)

experiments: $(stamp)
	@$(bin)/python -m workbook experiments run $(NAMES)

# A second call continues where the first stopped. Without the real corpora (`workbook data get`)
# it makes the same runs on those that need no network.
corpora := $(or $(WORKBOOK_DATA),data)/corpora
real := $(and $(wildcard $(corpora)/tinystories/train.txt),$(wildcard $(corpora)/owt/train.txt))
gpu: SCALE = $(if $(real),gpu,gpu-offline)
gpu: .venv/gpu-tested .venv/gpu-timed
	@echo "Runs at scale $(SCALE)"
	@$(bin)/python -m workbook experiments run $(NAMES) --scale $(SCALE) \
		$(if $(MINUTES),--minutes $(MINUTES))

.venv/gpu-tested: $(stamp)
	@$(bin)/python -m pytest tests -m gpu -q
	@touch $@

.venv/gpu-timed: .venv/gpu-tested
	@PYTHONPATH=tests $(bin)/python -m benchmarks train gpu --device cuda --steps 20
	@touch $@

stress: $(stamp)
	@STRESS=$(or $(STRESS),30) $(bin)/python -m pytest tests -m stress -q
	@for precision in float32 bfloat16; do for threads in 1 4; do \
		$(MAKE) --no-print-directory trained PRECISION=$$precision THREADS=$$threads || exit 1; \
	done; done

newest: install = -e ".[test]"
newest: $(stamp)
	@OMP_NUM_THREADS=1 $(bin)/python -m pytest workbook tests notebooks -m "not pins" \
		-n 2 --dist loadfile --no-loadscope-reorder --durations=20 $(nbval:--nbval=--nbval-lax)

# Everything that depends on a trained model, with freshly trained models.
trained: $(stamp)
	@echo "matmuls in $(PRECISION), threads: $(THREADS)"
	@data=$$(mktemp -d) && trap 'rm -rf "$$data"' EXIT && \
		WORKBOOK_DATA=$$data WORKBOOK_PRECISION=$(PRECISION) OMP_NUM_THREADS=$(THREADS) \
		$(bin)/python -m pytest notebooks tests/training tests/experiments/test_plans.py \
		tests/experiments/test_dry_run.py $(nbval) -q

lint: $(stamp)
	@$(bin)/python -m ruff check --quiet && $(bin)/python -m ruff format --check --quiet
	@$(bin)/python -m mypy --no-error-summary
	@$(bin)/python .ci/sizes.py

# No stamp means that a set-up was never begun or never finished: start from an empty folder.
# Bytecode is written on all cores, and for the workbook too, which pip leaves where it is: some
# machines forbid every later process to write it. A library may hold files for another Python.
$(stamp): pyproject.toml constraints.txt $(installed)
	$(if $(wildcard $@),,$(call stop_unless_suitable,$(answer)))
	@test -e $@ || { echo "Setting up .venv with $(PYTHON): once, a few minutes, about 2 GB"; \
		"$(PYTHON)" -m venv --clear .venv; }
	@rm -f $@
	$(if $(wildcard $(before)),@$(bin)/python -m pip uninstall -qq -y workbook)
	@$(bin)/python -m pip install --disable-pip-version-check --no-compile \
		$(install) \
		|| { echo "Set-up did not finish; pip says above why (often the network or the disk)." \
		"Run make again to start afresh." >&2; exit 1; }
	@echo "Compiling what was installed: a minute or a few"
	@$(bin)/python -m compileall -qq -j 0 -x /tests/ .venv/lib workbook || true
	@$(bin)/python -c "from workbook.tokenization import compiled; compiled.load_kernels()" || true
	@$(bin)/python -c "import os; open('$@', 'w').write(os.getcwd())"

# `error` ends make with the message alone; a failing command would add a line of make's own.
stop_unless_suitable = $(if $(filter suitable,$1),,$(error $(if $(filter Set-up,$1),$1,$(no_python))))
no_python = Set-up needs Python 3.11 or newer, and $(PYTHON) is not. Install one, or name one\
	with PYTHON=/path/to/python3.12

suitable:
	@test "$(answer)" = suitable
