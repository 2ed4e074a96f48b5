# Two commands for a fresh machine: `make demo` and `make test`. Everything else is CMake's.
PRESET ?= release
BUILD := build/$(PRESET)

.PHONY: demo test build deps dev-deps format lint

demo: build
	apps/demo/run.sh $(BUILD)

test: build
	ctest --test-dir $(BUILD) --output-on-failure -j "$$(nproc)"

build: deps
	cmake --preset $(PRESET)
	cmake --build $(BUILD)

deps:
	third_party/bootstrap.sh

dev-deps:
	third_party/bootstrap.sh --dev

format: dev-deps
	tests/lint/format.sh --fix

lint: dev-deps
	tests/lint/format.sh
	python3 tests/lint/check_sources.py .
	cmake --preset $(PRESET)
	python3 tests/lint/tidy.py $(BUILD)
