# make demo   trace GPT-2, ResNet-50 and a model that crashes; pages in build/demo/
# make lab    open JupyterLab on notebooks/quickstart.ipynb
# make test   everything that must pass: lint, types, Python, JavaScript, notebooks, headless Chromium
.DELETE_ON_ERROR:
.PHONY: demo lab test lint python-tests js-tests format documents clean

PYTHON ?= python3
# The release that CI knows; any other that pyproject.toml allows will do.
TORCH ?= torch==2.13.0

VENV := .venv
BIN := $(VENV)/bin
BUNDLE := python/torchatlas/static/atlas.js
JS_SOURCES := $(shell find js/src js/licenses js/build.mjs -type f)

export PIP_DISABLE_PIP_VERSION_CHECK := 1

demo: $(VENV)/.demo
	$(BIN)/python demo/demo.py build/demo

lab: $(VENV)/.lab
	$(BIN)/jupyter lab notebooks/quickstart.ipynb

test: lint js-tests python-tests

lint: $(VENV)/.test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	npm run --silent lint
	npm run --silent typecheck

js-tests: node_modules/.package-lock.json
	npm test --silent

python-tests: $(VENV)/.test
	bash tests/e2e/ensure_chromium.sh
	$(BIN)/python -m pytest

format: $(VENV)/.test
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format
	npm run --silent format

# The documents that the tests of both languages read.
documents: $(VENV)/.test
	$(BIN)/python tests/make_documents.py

clean:
	rm -rf $(VENV) node_modules build dist python/torchatlas/static

# torch by itself first: asked for as a dependency, pip takes the newest, which brings several GB of CUDA.
$(VENV)/.torch:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet '$(TORCH)'
	touch $@

$(VENV)/.demo: $(VENV)/.torch pyproject.toml $(BUNDLE)
	$(BIN)/pip install --quiet -e '.[demo]'
	touch $@

$(VENV)/.lab: $(VENV)/.demo
	$(BIN)/pip install --quiet -e '.[lab]'
	touch $@

# surgeon-pytorch alone: what it asks for, old stubs of numpy, would mislead the type checker.
$(VENV)/.test: $(VENV)/.torch pyproject.toml $(BUNDLE)
	$(BIN)/pip install --quiet -e '.[test,dev,export]'
	$(BIN)/pip install --quiet --no-deps surgeon-pytorch==0.0.4
	touch $@

node_modules/.package-lock.json: package-lock.json
	npm ci --no-audit --no-fund
	touch $@

$(BUNDLE): node_modules/.package-lock.json $(JS_SOURCES)
	node js/build.mjs
