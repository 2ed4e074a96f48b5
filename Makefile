# Two commands for a fresh machine: `make demo` and `make test`. Everything else is CMake's.
BUILD := build

.PHONY: demo test configure format lint

demo: configure
	cmake --build $(BUILD) --target programs
	apps/demo/run.sh $(BUILD)

test: configure
	cmake --build $(BUILD)
	ctest --test-dir $(BUILD) --output-on-failure -j "$$(nproc)"

configure:
	third_party/bootstrap.sh
	cmake --preset release

format:
	third_party/bootstrap.sh --dev
	tests/lint/format.sh --fix

lint:
	third_party/bootstrap.sh --dev
	cmake --preset release
	tests/lint/format.sh
	python3 tests/lint/check_sources.py .
	python3 tests/lint/tidy.py $(BUILD)
