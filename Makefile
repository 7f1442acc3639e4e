# Names for what tools/ and CMakePresets.json do. Every target first sets up what it needs.
.DEFAULT_GOAL := build
.PHONY: build lab demo test test-all bench asan tsan fuzz tidy format format-check docs wheel clean bootstrap bootstrap-test bootstrap-clang

export CTEST_PARALLEL_LEVEL ?= 2

bootstrap:
	@tools/bootstrap

bootstrap-test:
	@tools/bootstrap test

bootstrap-clang:
	@tools/bootstrap clang

# Library, command line and Python package for this machine; the tests are built with make test.
build: bootstrap
	@tools/build release --native --target nsimplex_cli

# The experiments besides, which nsimplex lab runs.
lab: bootstrap
	@tools/build release --native --target nsimplex_cli nsimplex_lab_cli

# The exit code is bad when either runner's is; both always run, and their summaries come last.
test: bootstrap-test
	@tools/build release
	@tools/test

# Slow experiments too.
test-all: bootstrap-test
	@tools/build release
	@tools/test --all

demo: lab
	@tools/demo

bench: bootstrap-test
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
docs: bootstrap-test build lab
	@tools/docs

# TORCH: interpreters with other versions of torch, which the wheel is to serve, too.
wheel: bootstrap
	@tools/build_wheel $(TORCH)

clean:
	rm -rf build dist
