# `make` alone lists the targets. Every target sets up what it needs: Python 3.11 or newer and make are enough.

.DEFAULT_GOAL := help
.PHONY: help install demo test lint format bench peers docs release lock clean
.DELETE_ON_ERROR:

VENV  := .venv
PY    := $(VENV)/bin/python
STAMP := $(VENV)/.installed
JOBS  ?= 2

# `make PYTHON=/path/to/python3.12 install` chooses an interpreter; otherwise the first of these that is new enough.
PYTHON ?=
PYTHON_CANDIDATES := $(or $(PYTHON),python3 python3.13 python3.12 python3.11 python)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

install: $(STAMP) ## create .venv and install the locked packages and the project

# Run again, it continues from the last checkpoint; once finished, it only measures. `rm -r runs/demo` starts over.
DEMO := runs/demo
demo: $(STAMP) ## set up, then train a point in a maze for a minute or two and measure its success
	@echo "Training a point in a maze: a minute or two. You can interrupt it; 'make demo' continues."
	$(VENV)/bin/higl train --config examples/demo.toml --out $(DEMO) --resume --checkpoint-minutes 0.5
	$(VENV)/bin/higl eval $(DEMO) --episodes 50
	@echo "The results are in $(DEMO): eval.csv, metrics.jsonl, policy.safetensors (see docs/run-folder.md)."

# Some tests open the report page in a browser or run sweeps on a local Slurm. Missing programs are installed if we are
# root; otherwise these tests are skipped with a message.
BROWSERS := chromium chromium-browser google-chrome google-chrome-stable
SLURM    := slurmctld /usr/sbin/slurmctld
# $(call provide,PROGRAMS (one is enough),PACKAGES,what they test)
define provide
	@for name in $(1); do command -v "$$name" >/dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "Installing $(2) for the tests of $(3)."; \
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
			apt-get install -y -qq --no-install-recommends $(2); } >/dev/null 2>&1 && exit 0; \
	fi; \
	echo "NOT INSTALLED: $(2). THE TESTS OF $(3) WILL BE SKIPPED." >&2
endef
test: $(STAMP) lint ## set up, then lint, then all tests
	$(call provide,$$HIGL_CHROMIUM $(BROWSERS),chromium,the report page)
	$(call provide,$(SLURM),slurm-wlm munge,sweeps by Slurm)
	$(PY) -m pytest -n $(JOBS) --dist worksteal $(PYTEST_ARGS)

lint: $(STAMP) ## ruff (rules and format) and ty (types)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m ty check --python $(VENV)

format: $(STAMP) ## let ruff rewrite the files
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

bench: $(STAMP) ## time env.step, and compare killed and resumed runs
	@set -e; for script in env_step kill_resume; do echo "benchmarks/$$script.py"; $(PY) benchmarks/$$script.py; done

# The CPU build of PyTorch is enough. It is installed first, so that Stable-Baselines3 does not choose another one.
PEERS := .peers
peers: | $(PY) ## create .peers: Stable-Baselines3 and MuJoCo, for benchmarks/peers.py and time_to_solved.py
	$(PY) -m venv $(PEERS)
	$(PEERS)/bin/pip install --quiet torch==2.13.0
	$(PEERS)/bin/pip install --quiet stable-baselines3==2.9.2
	$(PEERS)/bin/pip install --quiet mujoco==4.0.0

# The variable silences the notice that support for Material for MkDocs ends in May 2027.
docs: $(STAMP) ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet
	@echo "Built: open site/index.html, or '$(PY) -m http.server --directory site' for the search too."

release: $(STAMP) ## build the wheel and the source archive into dist/, and check them
	rm -rf dist
	$(PY) tools/release.py dist

# uv keeps the locked versions; `make lock UPGRADE=1` takes the newest. `fewest` locks one version of each package for
# every Python, so that 3.13 gets what is tested on 3.11.
# The other extras are left out: together they would double the download (dm_control, wandb's server, a web server), and
# trackio needs an older Pillow.
EXTRAS := robotics ray slurm tensorboard onnx docs dev
lock: | $(PY) ## write requirements.lock from pyproject.toml (UPGRADE=1: newest versions)
	@test -x $(VENV)/bin/uv || $(PY) -m pip install --quiet uv
	$(VENV)/bin/uv pip compile pyproject.toml $(addprefix --extra ,$(EXTRAS)) --universal --python-version 3.11 \
		--fork-strategy fewest --generate-hashes --system-certs --no-emit-index-url --no-emit-find-links \
		--custom-compile-command "make lock" $(if $(UPGRADE),--upgrade) --quiet --output-file requirements.lock

clean: ## remove .venv and all build products
	rm -rf $(VENV) $(PEERS) site dist build .pytest_cache .ruff_cache .hypothesis

# pip reads its index, proxy and certificates from its own configuration (pip.conf, PIP_*, HTTPS_PROXY). The build
# backend is in the lock, so installing the project downloads nothing more.
$(STAMP): pyproject.toml requirements.lock src/higl/__init__.py | $(PY)
	@$(PY) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(VENV) has a Python older than 3.11: remove it with 'make clean' and try again." >&2; exit 1; }
	@echo "Installing the packages of requirements.lock into $(VENV); the first time this takes a minute or two."
	@$(PY) -m pip install --quiet --require-hashes --requirement requirements.lock || { \
		echo "" >&2; \
		echo "The packages could not be installed; pip says why above. If it could not reach a package index:" >&2; \
		echo "pip uses your own settings ('$(PY) -m pip config list', PIP_INDEX_URL, HTTPS_PROXY). Then try again." >&2; \
		exit 1; }
	@$(PY) -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(PY):
	@found=""; \
	for candidate in $(PYTHON_CANDIDATES); do \
		if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			found="$$candidate"; break; \
		fi; \
	done; \
	if [ -z "$$found" ]; then \
		echo "Python 3.11 or newer is needed and was not found (tried: $(PYTHON_CANDIDATES))." >&2; \
		echo "Install it, or name it: make PYTHON=/path/to/python3.12 install" >&2; \
		exit 1; \
	fi; \
	if ! "$$found" -c 'import venv, ensurepip' 2>/dev/null; then \
		echo "$$found has no venv or no ensurepip module, so .venv cannot be made." >&2; \
		echo "On Debian and Ubuntu they are in the package python3-venv." >&2; \
		exit 1; \
	fi; \
	"$$found" -m venv --clear $(VENV) || { rm -rf $(VENV); echo "$$found -m venv failed." >&2; exit 1; }
