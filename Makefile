# Each target sets up .venv by itself; nothing but Python (3.11 or later), pip and make is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

GPYTORCH := .venv-gpytorch
GPYTORCH_PIP := $(GPYTORCH)/bin/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test test-fast test-lowest test-gpytorch test-report docs lint format bench bench-local scaling scaling-quick reproduce reproduce-quick reproduce-susy wheel clean calibration calibration-quick attack test-processors

demo: $(VENV)/.demo
	$(BIN)/bayesvm demo

# All tests.
test: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --dist loadfile

# Tests of every package without those marked slow: under 90 seconds on two cores, for use while one works.
test-fast: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow"

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The site, into out/site: open out/site/index.html. Runs the gallery; a warning is an error.
docs: $(VENV)/.docs
	rm -rf out/site docs/gallery docs/generated
	$(BIN)/python -m sphinx -b html -E -W --keep-going -n -q -d out/doctrees docs out/site
	@echo "written: out/site/index.html"

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks.throughput
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python -m benchmarks.calibration
	$(BIN)/python benchmarks/tuning.py

# Local models, LightGBM and jumps at borders: minutes. Needs the tables that BAYESVM_DATA names.
bench-local: $(VENV)/.bench
	$(BIN)/python -m benchmarks.local_models

# Time and memory of large tables, into docs/scaling.md: hours; `python -m benchmarks.scaling --only gemm` is one part.
# The quick one tries the scripts only. Where the GPyTorch environment cannot be made, SVGP is left out.
QUICK_scaling-quick := --quick
scaling scaling-quick: $(VENV)/.bench
	-$(MAKE) $(GPYTORCH)/.ready
	$(BIN)/python -m benchmarks.scaling $(QUICK_$@)

# The paper's tables and figures, into docs/reproduction.md: hours, but it resumes where it was stopped. S-GPC needs
# GPyTorch, which has an environment of its own; where that cannot be made, S-GPC is left out and the page says so.
QUICK_reproduce-quick := --quick
reproduce reproduce-quick: $(VENV)/.experiments
	-$(MAKE) $(GPYTORCH)/.ready
	$(BIN)/python -m experiments.reproduction $(QUICK_$@) --no-page
	if test -e $(GPYTORCH)/.ready; then \
		$(GPYTORCH)/bin/python -m experiments.reproduction $(QUICK_$@) --needs gpytorch --no-page; fi
	$(BIN)/python -m experiments.reproduction $(QUICK_$@) --page-only

# The paper's big data experiment on all five million rows; downloads them once.
reproduce-susy: $(VENV)/.experiments
	$(BIN)/python -m experiments.reproduction --only susy

# Probabilities of ours and of others, judged, into docs/calibration.md: half an hour, but it resumes where it was
# stopped. Needs the tables in the folder that BAYESVM_DATA names; sets that are not there are left out.
QUICK_calibration-quick := --quick
calibration calibration-quick: $(VENV)/.experiments
	$(BIN)/python -m experiments.calibration $(QUICK_$@)

# The lowest supported version of every dependency, in an environment of its own.
test-lowest:
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip --disable-pip-version-check --quiet install -c tests/lowest.txt \
		-e ".[tables,dask,plots,onnx]" pytest pandas onnxruntime
	.venv-lowest/bin/python -m pytest -W default

# Damaged files, random problems, killed processes: what docs/reliability.md promises, and the figures there. Minutes,
# and not part of CI; `python -m tests.attack --only kills` is one part.
attack: $(VENV)/.test
	$(BIN)/python -m tests.attack

# The tests with the arithmetic of several x86 processors; TESTS=tests/cli runs some of them only.
test-processors: $(VENV)/.test
	$(BIN)/python -m tests.processors -n auto --dist loadfile $(TESTS)

# The competitor that needs torch.
test-gpytorch: $(GPYTORCH)/.ready
	$(GPYTORCH_PIP) install --group test
	$(GPYTORCH)/bin/python -m pytest tests/experiments/test_svgp.py

# Reports in a browser: by day and by night, on a desk and on a phone; screenshots go to out/report.
test-report: $(VENV)/.report
	@command -v chromium > /dev/null && command -v chromedriver > /dev/null || { \
		echo "Chromium and its driver are needed: apt-get install chromium chromium-driver"; exit 1; }
	$(BIN)/python -m pytest browser_tests

# What would be published, checked; and the wheel, installed into a new environment and used there.
wheel: $(VENV)/.test
	$(PIP) install build twine
	rm -rf dist && $(BIN)/python -m build --outdir dist . > /dev/null
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m tests.wheel dist
	$(PYTHON) -m venv --clear .venv-wheel
	.venv-wheel/bin/python -m pip --disable-pip-version-check --quiet install dist/*.whl
	cd dist && ../.venv-wheel/bin/python -c "import bayesvm; print('installed wheel', bayesvm.__version__)"

clean:
	rm -rf .venv .venv-lowest .venv-wheel $(GPYTORCH) dist out docs/gallery docs/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade "pip>=25.1"

# Dependency groups are pip's way (25.1 and later) of naming what a developer needs and a user does not.
$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(PIP) install -e ".[cli]"
	touch $@

$(VENV)/.test $(VENV)/.lint $(VENV)/.bench $(VENV)/.experiments $(VENV)/.report $(VENV)/.docs: $(VENV)/.%: pyproject.toml | $(BIN)/python
	$(PIP) install -e . --group $*
	touch $@

# torch first and by its version: whatever else asks for torch is then content with it.
$(GPYTORCH)/.ready: pyproject.toml
	$(PYTHON) -m venv $(GPYTORCH)
	$(GPYTORCH_PIP) install --upgrade "pip>=25.1"
	$(GPYTORCH_PIP) install torch==2.13.0
	$(GPYTORCH_PIP) install gpytorch==1.15.2 -e . --group experiments
	touch $@
