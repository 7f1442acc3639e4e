# Names for what tools/ and CMakePresets.json do. Every target first sets up what it needs.
.DEFAULT_GOAL := build
.PHONY: build lab demo test test-all bench asan tsan fuzz tidy format format-check docs wheel clean bootstrap bootstrap-clang

python := .venv/bin/python
export CTEST_PARALLEL_LEVEL ?= 2

bootstrap:
	@tools/bootstrap

bootstrap-clang:
	@tools/bootstrap clang

# Library, command line and Python package; the tests are built with make test.
build: bootstrap
	@tools/build release --target nsimplex_cli

# The experiments besides, which nsimplex lab runs.
lab: bootstrap
	@tools/build release --target nsimplex_cli nsimplex_lab_cli

# The exit code is bad when either runner's is; both always run, and their summaries come last.
test: bootstrap
	@tools/build release
	@tools/test

# Slow experiments too.
test-all: bootstrap
	@tools/build release
	@tools/test --all

demo: lab
	@tools/demo

bench: bootstrap
	@tools/build release
	@tools/bench

asan tsan: bootstrap-clang
	@tools/build $@
	ctest --preset $@

# Each target for FUZZ_SECONDS, 60 where that is not set.
fuzz: bootstrap-clang
	@tools/fuzz

tidy: bootstrap-clang
	@tools/tidy

format: bootstrap-clang
	@tools/format

format-check: bootstrap-clang
	@tools/format --check

# The site of the documentation, in build/site/html.
docs: build
	@tools/docs

wheel: bootstrap
	$(python) -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir dist .
	@ls dist/*.whl

clean:
	rm -rf build dist
