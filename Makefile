# The five commands. Each installs what it needs first (scripts/install-deps says what, and does nothing when all is there).
.DEFAULT_GOAL := help
.PHONY: help demo test build bench check

help:
	@echo "make demo    4 local PostgreSQL shards, a router, a console and a sample; Ctrl-C stops all of it"
	@echo "make test    every test, against real PostgreSQL clusters that it starts and stops itself"
	@echo "make build   the program: build/release/kintsugi"
	@echo "make bench   side-by-side measurements, under bench/out/"
	@echo "make check   format, lint and include-direction checks"

build:
	@scripts/install-deps build
	@cmake --preset release >build-configure.log 2>&1 || { cat build-configure.log; rm -f build-configure.log; exit 1; }
	@rm -f build-configure.log
	@cmake --build --preset release

demo:
	@scripts/install-deps demo
	@$(MAKE) --no-print-directory build
	@exec build/release/kintsugi demo

test:
	@scripts/install-deps build test
	@scripts/run-tests

bench:
	@scripts/install-deps build bench
	@bench/run

check:
	@scripts/install-deps build check
	@scripts/run-checks
