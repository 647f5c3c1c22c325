# One line for each thing a person does; CI runs the same lines.
#
#   make demo        build, then look up the words of a sentence privately
#   make test        build, then run the tests of the package
#   make test-load   run the tests that measure behavior under load alone, as the end of make test
#   make sanitize    test the engine under the address and undefined-behavior sanitizers
#   make test-tiers  run the tests that depend on it with each narrower CPU tier than that of make test
#   make compat      install PyTorch (its CUDA builds are gigabytes) and TenSEAL, run the tests that need them
#   make cuda        compile the CUDA kernels for one architecture (ARCH), where nvcc is found, check for spills
#   make gpu-report  compile them for three architectures, print their registers, occupancy and predicted times
#   make check       format, lint, types, wording, C++ warnings, the engine's tests, constant time; cuda
#   make build       build into .venv
#   make wheel       build wheels for glibc 2.28 and newer into dist, and check them
#   make bench       measure
#   make applications  train the paper's three applications, measure them with real lookups: its figures (ARGS)
#   make paper-lookup, paper-ot, paper-quant, paper-audit    a paper's tables and figures (ARGS)
#   make private-inference   the same of private inference: four networks between two processes (ARGS)
#   make faults      kill, stop, cut and flood two parties of the service, and print what was lost (ARGS)
#   make soak        update and look up rows for an hour, and print the slope of the servers' memory (ARGS)
#   make cluster     test tables in shards on a local Ray cluster, kill what serves them, and measure it (ARGS)
#   make fuzz        feed random input to the parsers for FUZZ_SECONDS each
#   make docs        build the documentation as HTML
#   make format      rewrite the sources as `make check` expects them
#   make clean       remove everything that was built
#
# CUDA=ON with any of them compiles for NVIDIA GPUs on a machine without one, CUDA=OFF leaves that out;
# without it, the machine's own GPU decides. JOBS is how many tests run at a time (auto: a processor each).

# Make, CMake and pip's options separate file names by spaces.
ifneq ($(words $(CURDIR)),1)
  $(error the path of this checkout contains a space, found "$(CURDIR)": move it to a path without spaces)
endif

PYTHON ?= python3
VENV ?= .venv
FUZZ_SECONDS ?= 60
JOBS ?= auto
ARCH ?= 90
BIN := $(VENV)/bin
CONSTRAINTS := $(abspath constraints.txt)

# Build tools come from the constraints too, inside pip's isolated build environments as well.
export PIP_CONSTRAINT := $(CONSTRAINTS)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export SENTENCE

# Tests start hundreds of Python processes. Bytecode is kept in build/pycache, also where the
# environment forbids it in the sources: otherwise every process compiles all that it imports.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX := $(CURDIR)/build/pycache

ENGINE := $(shell find core cmake -type f) CMakeLists.txt
CXX_FILES := $(shell find core tests -name "*.cc" -o -name "*.h" -o -name "*.cu")

# Everything but the sanitizers' build shares build/engine: the package, the engine's tests, the lints.
# STRICT=ON, which `make check` sets, makes warnings errors there.
BUILD := build/engine
ENGINE_OPTIONS = $(if $(CUDA),-D NESCIO_CUDA=$(CUDA)) $(if $(STRICT),-D NESCIO_STRICT=$(STRICT))
check: export STRICT := ON

PYTEST := $(BIN)/python -m pytest -q --dist worksteal
TIER_TESTS := $(addprefix tests/,base/test_tiers.py prg dpf/test_properties.py dpf/test_vectors.py \
  pir/test_lookup.py pir/test_change.py pir/test_vectors.py ot/test_sessions.py ot/test_transfers.py \
  bitserial/test_spec.py quant/test_matrix.py quant/test_layers.py rlwe/test_products.py)

.PHONY: FORCE demo test test-load test-tiers sanitize build-sanitize compat cuda gpu-report check build bench \
  fuzz fuzz-key fuzz-lut fuzz-rlwe fuzz-wire fuzz-mpc fuzz-quant docs wheel format clean

demo: $(VENV)/.demo
	@echo "Starting the demonstration: $(BIN)/nescio demo"
	@$(BIN)/nescio demo $${SENTENCE:+-- "$$SENTENCE"}

# Tests of behavior under load run after the others, alone. Pytest exits with 5 where none is selected.
test: $(VENV)/.test
	$(PYTEST) tests -n $(JOBS) -m "not load and not cluster" $(PYTEST_ARGS) || [ $$? = 5 ]
	$(MAKE) test-load

LOAD_TESTS := $(addprefix tests/,net pir service commands/test_bench_cluster_disk.py \
  docs/test_cluster_tutorial.py)

test-load: $(VENV)/.test
	$(PYTEST) $(LOAD_TESTS) -m "load and not cluster" $(PYTEST_ARGS) || [ $$? = 5 ]

# Each CPU tier of this machine as the one in use: the tests that do not name a tier themselves. The
# widest, which is in use without a choice, is that of `make test`.
test-tiers: $(VENV)/.test
	@for tier in $$($(BIN)/python -c 'from nescio import _core; print(*_core.supported_tiers()[:-1])'); do \
	  echo "NESCIO_CPU=$$tier"; \
	  NESCIO_CPU=$$tier $(PYTEST) -n $(JOBS) --only-default-tier $(TIER_TESTS) $(PYTEST_ARGS) || exit 1; \
	done

# The engine alone, under the address and undefined-behavior sanitizers.
sanitize: build-sanitize
	$(BIN)/cmake --build build/sanitize
	$(BIN)/ctest --test-dir build/sanitize -j 2 --output-on-failure

build-sanitize: $(VENV)/.build
	@$(BIN)/cmake -G Ninja -S . -B build/sanitize -DNESCIO_PYTHON=OFF -DNESCIO_TESTS=ON \
	  -DNESCIO_SANITIZE=address,undefined -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS="-Og" > build/sanitize.log || (cat build/sanitize.log; false)

# What needs PyTorch or TenSEAL, or tests that nothing imports it: `make test` skips it, or cannot tell.
COMPAT_TESTS := $(addprefix tests/,audit/leakage compat examples pytorch quant/torch quant/test_without_torch.py docs \
  commands/test_bench_quant.py commands/test_bench_quant_models.py pir/test_lookup.py::test_pytorch_tensors \
  bitserial/test_device_arguments.py ot/test_device.py::test_other_libraries_take_blocks_as_they_are \
  quant/test_device.py::test_tensors_on_a_card rlwe/test_foreign.py)

compat: $(VENV)/.test $(VENV)/.compat $(VENV)/.foreign
	$(PYTEST) -n $(JOBS) $(COMPAT_TESTS) -m "not load and not cluster" $(PYTEST_ARGS)

# The CUDA sources with warnings as errors; no card is needed, and nothing is linked. Each kernel's
# registers, spills and occupancy are compared with scripts/gpu_report.json.
CUDA_BUILD = build/cuda-$(ARCH)
CUDA_OBJECTS = $$($(BIN)/ninja -C $(CUDA_BUILD) -t targets all | sed -n 's/^\(.*_cuda\.dir.*\.cu\.o\): .*/\1/p')
CUDA_LAUNCHER = $(abspath $(BIN))/python;$(abspath scripts/keep_output.py)$(CMAKE_CUDA_COMPILER_LAUNCHER:%=;%)
cuda: $(VENV)/.build
	@if command -v nvcc > /dev/null; then \
	  ($(BIN)/cmake -G Ninja -S . -B $(CUDA_BUILD) -DNESCIO_CUDA=ON -DNESCIO_STRICT=ON \
	    -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja -DPython_EXECUTABLE=$(abspath $(BIN))/python \
	    -DCMAKE_CUDA_FLAGS="-Xptxas=-v --no-compress" "-DCMAKE_CUDA_COMPILER_LAUNCHER=$(CUDA_LAUNCHER)" \
	    -DCMAKE_CUDA_ARCHITECTURES=$(ARCH) > build/cuda.log 2>&1 || (cat build/cuda.log; false)) && \
	  $(BIN)/ninja -C $(CUDA_BUILD) $(CUDA_OBJECTS) && \
	  $(BIN)/python scripts/gpu_report.py --check $(CUDA_BUILD); \
	else echo "make cuda: nvcc was not found, the CUDA sources are not compiled"; fi

# The same for three architectures, then tables of all kernels and the times predicted for two cards.
# Where cuobjdump is installed, instructions are counted in machine code.
REPORT_ARCHS = 75 80 90
gpu-report: $(VENV)/.build
	@for arch in $(REPORT_ARCHS); do $(MAKE) --no-print-directory cuda ARCH=$$arch || exit 1; done
	@if command -v nvcc > /dev/null; then $(BIN)/python scripts/gpu_report.py $(REPORT_ARCHS:%=build/cuda-%); fi

check: $(VENV)/.check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python scripts/check_words.py
	@$(BIN)/clang-format --dry-run -Werror $(CXX_FILES)
	$(BIN)/cmake -DNESCIO_STRICT=ON -DNESCIO_TESTS=ON $(BUILD) > build/check.log || (cat build/check.log; false)
	$(BIN)/cmake --build $(BUILD)
	$(BIN)/python scripts/check_stub.py $(BUILD) src/nescio/_core.pyi
	$(BIN)/python scripts/check_tiers.py $(BUILD)
	$(BIN)/ctest --test-dir $(BUILD) -j 2 --output-on-failure
	@if command -v nvcc > /dev/null; then $(MAKE) --no-print-directory cuda; fi

build: $(VENV)/.build

bench: $(VENV)/.bench
	$(BIN)/nescio bench dpf
	$(BIN)/nescio bench lookup
	$(BIN)/nescio bench quant
	$(BIN)/nescio bench service
	$(BIN)/nescio bench table

# Each parser alone, so that `make -j` runs them at the same time.
fuzz: fuzz-key fuzz-lut fuzz-rlwe fuzz-wire fuzz-mpc fuzz-quant

fuzz-key: build-sanitize
	$(BIN)/cmake --build build/sanitize --target fuzz_key
	build/sanitize/tests/core/fuzz_key -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -print_final_stats=1

fuzz-lut: build-sanitize
	$(BIN)/cmake --build build/sanitize --target fuzz_lut
	build/sanitize/tests/core/fuzz_lut -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -print_final_stats=1

fuzz-rlwe: build-sanitize
	$(BIN)/cmake --build build/sanitize --target fuzz_rlwe
	build/sanitize/tests/core/fuzz_rlwe -max_total_time=$(FUZZ_SECONDS) -max_len=65536 -print_final_stats=1

fuzz-wire: $(VENV)/.fuzz
	$(BIN)/python tests/fuzz/fuzz_wire.py -max_total_time=$(FUZZ_SECONDS) -max_len=4096
	$(BIN)/python tests/fuzz/fuzz_data.py -max_total_time=$(FUZZ_SECONDS) -max_len=4096

fuzz-mpc: $(VENV)/.fuzz
	$(BIN)/python tests/fuzz/fuzz_mpc.py -max_total_time=$(FUZZ_SECONDS) -max_len=4096

fuzz-quant: $(VENV)/.fuzz
	$(BIN)/python tests/fuzz/fuzz_http.py -max_total_time=$(FUZZ_SECONDS) -max_len=1024 -len_control=0
	$(BIN)/python tests/fuzz/fuzz_quant.py -max_total_time=$(FUZZ_SECONDS) -max_len=1024 -len_control=0

docs: $(VENV)/.docs
	$(BIN)/sphinx-build -q -W docs build/docs
	@echo "open build/docs/index.html"

wheel: $(BIN)/python
	$(BIN)/python scripts/wheel.py

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
	@mkdir -p build && $(BIN)/python scripts/requirements.py build > build/build.txt && $(BIN)/pip install --quiet --no-compile -r build/build.txt
	@$(BIN)/python scripts/install.py $(ENGINE_OPTIONS)
	@touch $@

# Each extra adds what one of the lines above needs.
EXTRAS := demo bench compat check docs foreign fuzz audit-lattice
$(EXTRAS:%=$(VENV)/.%): $(VENV)/.%: $(VENV)/.build
	@echo "Installing the packages of the extra '$*'"
	@$(BIN)/python scripts/requirements.py $* > build/$*.txt && $(BIN)/pip install --quiet --no-compile -r build/$*.txt
	@touch $@

# Tests also need the GPU kernels compiled for the processor, which no wheel contains.
$(VENV)/.test: $(VENV)/.build
	@echo "Installing the packages of the extra 'test', and compiling the emulated device"
	@$(BIN)/python scripts/requirements.py test > build/test.txt && $(BIN)/pip install --quiet --no-compile -r build/test.txt
	@$(BIN)/cmake --build $(BUILD) --target _emulated
	@$(BIN)/cmake --install $(BUILD) --component emulated --prefix $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
	@touch $@

# The tables and figures of papers, outside the package: see benchmarks/. RESULTS is their folder.
RESULTS ?= results
.PHONY: applications paper-lookup paper-ot paper-quant paper-audit private-inference

applications: $(VENV)/.bench $(VENV)/.compat
	$(BIN)/python -m benchmarks.applications all --out $(RESULTS)/applications $(ARGS)

paper-lookup: $(VENV)/.bench
	$(BIN)/python -m benchmarks.lookup figures --out $(RESULTS)/lookup $(ARGS)

paper-ot: $(VENV)/.bench
	mkdir -p $(RESULTS)
	$(BIN)/python -m benchmarks.ot steps --json $(RESULTS)/ot-steps.json --plot $(RESULTS)/ot-steps.svg $(ARGS)

paper-quant: $(VENV)/.bench $(VENV)/.compat
	$(BIN)/python -m benchmarks.quant models --out $(RESULTS)/quant --cache $(RESULTS)/networks $(ARGS)

paper-audit: $(VENV)/.bench $(VENV)/.compat $(VENV)/.audit-lattice
	mkdir -p $(RESULTS)
	$(BIN)/python -m benchmarks.audit figures --json $(RESULTS)/audit.json --plot $(RESULTS)/audit $(ARGS)

.PHONY: faults soak

faults: $(VENV)/.bench
	mkdir -p $(RESULTS)
	$(BIN)/python -m benchmarks.faults suite --json $(RESULTS)/faults.json $(ARGS)

soak: $(VENV)/.bench
	mkdir -p $(RESULTS)
	$(BIN)/python -m benchmarks.faults soak --seconds 3600 --json $(RESULTS)/soak.json $(ARGS)

# FAULT_KILLS is how many replicas the table of faults kills: 500 take about half an hour on two processors.
FAULT_KILLS ?= 60
.PHONY: cluster

CLUSTER_TESTS := $(addprefix tests/,pir/sharded service/cluster service/test_end_to_end.py commands/test_build.py commands/test_build_refusals.py \
  docs/test_cluster_tutorial.py examples/test_cluster.py)

cluster: $(VENV)/.test $(VENV)/.bench
	$(PYTEST) $(CLUSTER_TESTS) $(PYTEST_ARGS)
	mkdir -p $(RESULTS)
	$(BIN)/python -m benchmarks.faults cluster --kills $(FAULT_KILLS) --json $(RESULTS)/cluster-faults.json
	$(BIN)/nescio bench cluster --threads 2 --json $(RESULTS)/cluster.json $(ARGS)

private-inference: $(VENV)/.bench $(VENV)/.compat
	$(BIN)/python -m benchmarks.infer figures --out $(RESULTS)/infer $(ARGS)
