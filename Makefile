# One line for each thing a person does; CI runs the same lines.
#
#   make demo     build, then look the words of a sentence up privately
#   make test     build, then run every test
#   make compat   build, install PyTorch (its CUDA builds are gigabytes), test what needs it
#   make check    format, lint, types, C++ warnings, constant time
#   make build    build into .venv
#   make bench    measure
#   make paper-lookup, paper-ot, paper-quant, paper-audit    a paper's tables and figures (ARGS)
#   make fuzz     feed the parsers garbage for FUZZ_SECONDS
#   make docs     the documentation as HTML
#   make format   rewrite the sources as `make check` wants them
#   make clean    remove everything that was built

PYTHON ?= python3
VENV ?= .venv
FUZZ_SECONDS ?= 60
BIN := $(VENV)/bin
CONSTRAINTS := $(abspath constraints.txt)

# Build tools come from the constraints too, inside pip's isolated build environments as well.
export PIP_CONSTRAINT := $(CONSTRAINTS)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export SENTENCE

ENGINE := $(shell find core cmake -type f) CMakeLists.txt
CXX_FILES := $(shell find core tests -name "*.cc" -o -name "*.h" -o -name "*.cu")

# Everything but the sanitizers' build shares build/engine: the package, the engine's tests, the lints.
# STRICT=ON, which `make check` sets, makes warnings errors there.
BUILD := build/engine
ENGINE_OPTIONS = $(if $(CUDA),-D NESCIO_CUDA=$(CUDA)) $(if $(STRICT),-D NESCIO_STRICT=$(STRICT))
check: export STRICT := ON

.PHONY: FORCE demo test engine-test compat check build bench fuzz docs format clean

demo: $(VENV)/.demo
	@echo "Starting the demonstration: $(BIN)/nescio demo"
	@$(BIN)/nescio demo $${SENTENCE:+-- "$$SENTENCE"}

test: $(VENV)/.test engine-test
	$(BIN)/python -m pytest tests $(PYTEST_ARGS)

# The engine alone, under the address and undefined-behaviour sanitizers.
engine-test: $(VENV)/.test
	@$(BIN)/cmake -G Ninja -S . -B build/sanitize -DNESCIO_PYTHON=OFF -DNESCIO_TESTS=ON \
	  -DNESCIO_SANITIZE=address,undefined -DCMAKE_BUILD_TYPE=RelWithDebInfo > build/sanitize.log || (cat build/sanitize.log; false)
	$(BIN)/cmake --build build/sanitize
	$(BIN)/ctest --test-dir build/sanitize --output-on-failure

# What needs PyTorch: `make test` runs the same files and skips what it cannot import.
compat: $(VENV)/.test $(VENV)/.compat
	$(BIN)/python -m pytest tests/audit/leakage tests/compat tests/quant tests/docs \
	  tests/commands/test_bench_quant*.py $(PYTEST_ARGS)

check: $(VENV)/.check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	@$(BIN)/clang-format --dry-run -Werror $(CXX_FILES)
	$(BIN)/cmake -DNESCIO_STRICT=ON -DNESCIO_TESTS=ON $(BUILD) > build/check.log || (cat build/check.log; false)
	$(BIN)/cmake --build $(BUILD)
	$(BIN)/python scripts/check_stub.py $(BUILD) src/nescio/_core.pyi
	$(BIN)/python scripts/check_tiers.py $(BUILD)
	$(BIN)/ctest --test-dir $(BUILD) --output-on-failure

build: $(VENV)/.build

bench: $(VENV)/.bench
	$(BIN)/nescio bench dpf
	$(BIN)/nescio bench lookup
	$(BIN)/nescio bench quant
	$(BIN)/nescio bench service
	$(BIN)/nescio bench table

fuzz: $(VENV)/.fuzz engine-test
	build/sanitize/tests/core/fuzz_key -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -print_final_stats=1
	$(BIN)/python tests/fuzz/fuzz_wire.py -max_total_time=$(FUZZ_SECONDS) -max_len=4096
	$(BIN)/python tests/fuzz/fuzz_quant.py -max_total_time=$(FUZZ_SECONDS) -max_len=1024 -len_control=0

docs: $(VENV)/.docs
	$(BIN)/sphinx-build -q -W docs build/docs
	@echo "open build/docs/index.html"

format: $(VENV)/.check
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/clang-format -i $(CXX_FILES)

clean:
	rm -rf build dist $(VENV)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit(f"Nescio needs Python 3.11 or newer, {sys.executable} is {v.major}.{v.minor}: name another with make PYTHON=python3.12")'
	@$(PYTHON) -c 'import ensurepip, venv' || (echo "error: $(PYTHON) cannot make environments; on Debian and Ubuntu: sudo apt install python3-venv" >&2; false)
	@echo "Making a Python environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV) || (rm -rf $(VENV); false)

# CUDA=... of the last call that had one.
$(VENV)/.cuda: $(BIN)/python FORCE
	@[ -e $@ ] && [ "$(CUDA)" = "" -o "$(CUDA)" = "$$(cat $@)" ] || echo "$(CUDA)" > $@
FORCE:

# The package is installed in place: Python sources are used as they are, the engine is rebuilt when
# its own sources change. The build's tools stay in the environment, so that an install that changes no
# source compiles nothing.
$(VENV)/.build: $(BIN)/python $(VENV)/.cuda scripts/install.py pyproject.toml constraints.txt $(ENGINE)
	@echo "Installing the build's tools into $(VENV)"
	@mkdir -p build && $(BIN)/python scripts/requirements.py build > build/build.txt && $(BIN)/pip install --quiet -r build/build.txt
	@$(BIN)/python scripts/install.py $(ENGINE_OPTIONS)
	@touch $@

# Each extra adds what one of the lines above needs.
$(VENV)/.demo $(VENV)/.bench $(VENV)/.compat $(VENV)/.check $(VENV)/.docs $(VENV)/.fuzz: $(VENV)/.%: $(VENV)/.build
	@echo "Installing the packages of the extra '$*'"
	@$(BIN)/python scripts/requirements.py $* > build/$*.txt && $(BIN)/pip install --quiet -r build/$*.txt
	@touch $@

# Tests also need the GPU kernels compiled for the processor, which no wheel contains.
$(VENV)/.test: $(VENV)/.build
	@echo "Installing the packages of the extra 'test', and compiling the emulated device"
	@$(BIN)/python scripts/requirements.py test > build/test.txt && $(BIN)/pip install --quiet -r build/test.txt
	@$(BIN)/cmake --build $(BUILD) --target _emulated
	@$(BIN)/cmake --install $(BUILD) --component emulated --prefix $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
	@touch $@

# The tables and figures of papers, outside the package: see benchmarks/. RESULTS is their folder.
RESULTS ?= results
.PHONY: paper-lookup paper-ot paper-quant paper-audit

paper-lookup: $(VENV)/.bench
	$(BIN)/python -m benchmarks.lookup figures --out $(RESULTS)/lookup $(ARGS)

paper-ot: $(VENV)/.bench
	mkdir -p $(RESULTS)
	$(BIN)/python -m benchmarks.ot steps --json $(RESULTS)/ot-steps.json --plot $(RESULTS)/ot-steps.svg $(ARGS)

paper-quant: $(VENV)/.bench $(VENV)/.compat
	$(BIN)/python -m benchmarks.quant models --out $(RESULTS)/quant --cache $(RESULTS)/networks $(ARGS)

paper-audit: $(VENV)/.bench $(VENV)/.compat
	mkdir -p $(RESULTS)
	$(BIN)/python -m benchmarks.audit figures --json $(RESULTS)/audit.json --plot $(RESULTS)/audit $(ARGS)
