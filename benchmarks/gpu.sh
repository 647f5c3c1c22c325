#!/usr/bin/env bash
# Builds, tests and measures Nescio on the GPU of this machine, in one run and without a network:
#
#   benchmarks/gpu.sh                     all steps, on the first GPU
#   benchmarks/gpu.sh install figures     some steps, in the order of the list below
#   benchmarks/gpu.sh --emulated          the same on the emulated device, with meaningless sizes
#   benchmarks/gpu.sh --help              this text
#
# Steps, the most informative first: install, info, test, lookup, ot, quant, sanitize, figures.
#
# Needed:      Python 3.11 with numpy and pytest.
# To install:  a C++20 compiler, nvcc 12.4, cmake, ninja, nanobind and scikit-build-core. The package
#              is installed into the environment of PYTHON.
# Used if found: pytest-xdist (parallel tests), torch (cuBLAS, tests of the compatible API),
#              matplotlib (plots), compute-sanitizer.
#
# The script checks these first, says what is missing, and leaves out only the steps that need it.
#
#   OUT=gpu-results     folder for gpu.log and results.tar.gz: the cases as JSON, figures, plots.
#                       The archive is rewritten after each command.
#   LIMIT=530           seconds for the whole run; later steps get what is left
#   DEVICE=cuda         the GPU: cuda, cuda:1, ...
#   PYTHON=python3      the interpreter
#
# A step that fails does not stop the next. The exit code is the number of failed commands.
set -uo pipefail
cd "$(dirname "$0")/.."

STEPS=(install info test lookup ot quant sanitize figures)
OUT=${OUT:-gpu-results}
LIMIT=${LIMIT:-530}
DEVICE=${DEVICE:-cuda}
PYTHON=${PYTHON:-python3}
RESULTS=build/gpu-results
FIGURES_SECONDS=90  # reserved for the figures while the sanitizers run
failed=()
left_out=()

# The emulated device differs in sizes and in the selection of tests only.
rows_many=1048576 rows_few=16384
batches=1,8,64,512,1024,4096 batches_few=512,4096,16384 batch=512
bins="--rows 1048576 --bins 1,16,64,256 --clients 1,16,64,256"
row_bytes=256 cuda=ON seconds=0.5 figure_seconds=0.1 quick=() tests=(-m gpu)
ots=2^23 step_seconds=0.2 ot_limit=40
quant_sizes=512,1024,2048,4096 quant_count=200
emulate() {
  DEVICE=emulated rows_many=1500 rows_few=600 batches=1,3 batches_few=2,4 batch=3
  bins="--rows 512 --bins 1,4 --clients 1,2 --lookups 2"
  row_bytes=8 cuda=OFF seconds=0.01 figure_seconds=0.001 quick=(--quick)
  ots=100 step_seconds=0.001 ot_limit=120  # some steps of 'single' trees take 20 s there
  quant_sizes=64 quant_count=1
  tests=(-k "work_of_the_strategies or overwritten or no_keys or variants_of_growing or facts")
}

wanted=()
for argument in "$@"; do
  case " ${STEPS[*]} " in
    *" $argument "*) wanted+=("$argument") ;;
    *)
      [ "$argument" = --emulated ] && emulate && continue
      [ "$argument" = --help ] && sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" && exit 0
      echo "gpu.sh: '$argument' is not a step; expected: ${STEPS[*]}" >&2
      exit 2
      ;;
  esac
done
[ ${#wanted[@]} -gt 0 ] || wanted=("${STEPS[@]}")
[[ $LIMIT =~ ^[1-9][0-9]*$ ]] || { echo "gpu.sh: LIMIT: found '$LIMIT', expected seconds" >&2; exit 2; }
is_wanted() { case " ${wanted[*]} " in *" $1 "*) ;; *) return 1 ;; esac; }

rm -rf "$RESULTS"
mkdir -p "$OUT" "$RESULTS" || exit 1
OUT=$(cd "$OUT" && pwd)
export PYTHONUNBUFFERED=1
[ "$DEVICE" = emulated ] || export NESCIO_TEST_DEVICE=$DEVICE  # tests then fail without this GPU
exec > >(tee "$OUT/gpu.log") 2>&1
log=$!

# ---- Running commands ----------------------------------------------------------------------------

# pack: writes the archive of everything measured so far.
pack() {
  tar -czf "$OUT/results.tar.gz.part" -C "$(dirname "$RESULTS")" "$(basename "$RESULTS")" &&
    mv "$OUT/results.tar.gz.part" "$OUT/results.tar.gz"
}

# run NAME SECONDS COMMAND...: runs a command with a time limit and reports how it ended.
reserve=0  # seconds that must be left for later steps
run() {
  local name=$1 most=$2 left=$((LIMIT - SECONDS - reserve)) begin=$SECONDS code
  shift 2
  printf '\n== %s\n$ %s\n' "$name" "$*"
  [ "$left" -gt 0 ] || { skip "$name" "no time left"; return; }
  timeout --kill-after=5 $((most < left ? most : left)) "$@"
  code=$?
  echo "-- $name: $([ $code = 0 ] && echo ok || echo "failed with $code"), $((SECONDS - begin)) s"
  [ $code = 0 ] || failed+=("$name ($([ $code = 124 ] && echo "ran out of time" || echo "exit code $code"))")
  pack
}

# skip NAME WHY: reports a command that is left out.
skip() {
  printf '\n== %s: left out: %s\n' "$1" "$2"
  left_out+=("$1 ($2)")
}

# ---- What the machine has ------------------------------------------------------------------------

can_import() { "$PYTHON" -P -c "import importlib.util as u, sys; sys.exit(u.find_spec('$1') is None)" 2> /dev/null; }

# need WHAT USE COMMAND...: reports whether a need is met; returns 1 if it is not.
need() {
  local what=$1 use=$2
  shift 2
  if "$@" > /dev/null 2>&1; then
    printf 'found    %-20s %s\n' "$what" "$use"
  else
    printf 'MISSING  %-20s %s\n' "$what" "$use"
    return 1
  fi
}

cxx() { command -v "${CXX:-c++}" || command -v g++ || command -v clang++; }
python_version() { "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; }

PATH=$PATH:/usr/local/cuda/bin
missing_to_install=()
echo "== needs"
need "python 3.11" "all steps" python_version || missing_python=1
need numpy "all steps" can_import numpy || missing_python=1
need pytest "test, sanitize" can_import pytest || missing_pytest=1
need "C++ compiler" install cxx || missing_to_install+=("a C++ compiler")
[ $cuda = OFF ] || need nvcc install command -v nvcc || missing_to_install+=(nvcc)
for module in cmake ninja nanobind scikit_build_core; do
  if [ "$module" = cmake ] || [ "$module" = ninja ]; then
    need $module install command -v $module || need "$module (Python)" install can_import $module ||
      missing_to_install+=($module)
  else
    need $module install can_import $module || missing_to_install+=($module)
  fi
done
[ $cuda = OFF ] || need "an NVIDIA GPU" "all steps but install" nvidia-smi
need pytest-xdist "parallel tests" can_import xdist && parallel=1
need torch "cuBLAS as baseline of quant; test-compat" can_import torch && torch=1
need matplotlib "plots of the figures" can_import matplotlib
need compute-sanitizer sanitize command -v compute-sanitizer && sanitizer=1
if [ -n "${missing_python:-}" ]; then
  echo "gpu.sh: nothing can run without Python 3.11 and numpy; set PYTHON" >&2
  exec >&- 2>&-
  wait "$log"
  exit 1
fi

cores=$(nproc)
# pytest-benchmark warns when it meets pytest-xdist, and the project turns warnings into errors.
pytest=("$PYTHON" -m pytest -q -p no:cacheprovider -p no:benchmark)
# The project sets an option of pytest-timeout, which is an error where the plugin is missing.
can_import pytest_timeout || pytest+=(-W ignore::pytest.PytestConfigWarning)
parallel_pytest=("${pytest[@]}")
[ -z "${parallel:-}" ] || parallel_pytest+=(-n "$((cores < 8 ? cores : 8))")

# ---- Steps ---------------------------------------------------------------------------------------

# Compiles the kernels for the architecture of this machine's GPU alone, and the emulated device,
# which the tests compare with.
step_install() {
  if [ ${#missing_to_install[@]} -gt 0 ]; then
    skip install "missing: ${missing_to_install[*]}"
    return
  fi
  run install 260 "$PYTHON" -m pip install -v --no-build-isolation --no-deps --no-index \
    --force-reinstall --disable-pip-version-check -C "cmake.define.NESCIO_CUDA=$cuda" \
    -C "build.targets=nescio_modules;_emulated" -C "install.components=Unspecified;emulated" .
}

step_info() { run info 30 "$PYTHON" -m nescio info; }

step_test() {
  local files=() file
  if [ -n "${missing_pytest:-}" ]; then
    skip test "pytest is missing"
    return
  fi
  for file in tests/pir/test_answer_gpu.py tests/pir/test_bins_gpu.py tests/ot/test_device.py tests/bitserial/test_device.py \
    tests/pir/test_devices.py tests/ot/test_devices.py tests/bitserial/test_device_arguments.py tests/bitserial/test_groups.py \
    tests/quant/test_device.py tests/quant/torch/test_gpu.py; do
    [ -e "$file" ] && files+=("$file") || skip "$file" "the file does not exist"
  done
  run test 150 "${parallel_pytest[@]}" --continue-on-collection-errors "${tests[@]}" "${files[@]}"
  [ -z "${torch:-}" ] || run test-compat 60 "${parallel_pytest[@]}" tests/compat
}

step_lookup() {
  lookup million "--rows $rows_many --row-bytes $row_bytes --batch $batches --generator chacha20,aes128"
  lookup small "--rows $rows_few --row-bytes 64 --batch $batches_few --generator chacha20,aes128"
  lookup bins "$bins --row-bytes 64"
  lookup words "--rows $rows_many --row-bytes $row_bytes --batch $batch --output u8,u32 --generator chacha20,aes128"
  lookup paper "--rows $rows_many --row-bytes $row_bytes --batch $batch --output u128 --strategy bounded --generator aes128"
}

# lookup NAME OPTIONS: one table of answers.
lookup() {
  # shellcheck disable=SC2086
  run "lookup-$1" 75 "$PYTHON" -m nescio bench lookup --device "$DEVICE" --seconds "$seconds" \
    --json "$RESULTS/lookup-$1.json" $2
}

step_ot() {
  run ot-steps "$ot_limit" "$PYTHON" -m benchmarks.ot steps --n "$ots" --device "$DEVICE" \
    --seconds "$step_seconds" --json "$RESULTS/ot-steps.json"
}

# Table 3.1 of the thesis; then every kernel at one size, for the plan in core/bitserial/.
step_quant() {
  quant table "--size $quant_sizes"
  quant kernels "--size ${quant_sizes##*,} --weight-bits 1,4 --kernel count,count-fused,matrix,matrix-fused"
  quant batch "--size ${quant_sizes##*,} --weight-bits 1,4 --activation-bits 8 --batch 16"
}

# quant NAME OPTIONS: one table of products.
quant() {
  # shellcheck disable=SC2086
  run "quant-$1" 60 "$PYTHON" -m benchmarks.quant gpu --device "$DEVICE" --count "$quant_count" \
    --json "$RESULTS/quant-$1.json" $2
}

# A few tests with every access to global and shared memory checked.
step_sanitize() {
  local tool
  if [ "$DEVICE" = emulated ] || [ -z "${sanitizer:-}" ] || [ -n "${missing_pytest:-}" ]; then
    skip sanitize "it needs a GPU, compute-sanitizer and pytest"
    return
  fi
  ! is_wanted figures || reserve=$FIGURES_SECONDS
  for tool in memcheck racecheck; do
    sanitize "$tool" 50 tests/pir/test_answer_gpu.py "test_every_output_and_strategy and (bit or u32)"
    sanitize "$tool-ot" 40 tests/ot/test_device.py \
      "variants_of_growing or punctured_trees or (expand_convolute and 201)"
    sanitize "$tool-quant" 40 tests/bitserial/test_device.py \
      "test_shapes or (test_floats and (3 or 17))"
  done
  reserve=0
}

# sanitize NAME SECONDS FILE TESTS: the tests of a file under the tool that NAME begins with.
sanitize() {
  run "$1" "$2" compute-sanitizer --tool "${1%%-*}" --error-exitcode 86 "${pytest[@]}" -m gpu "$3" -k "$4"
}

step_figures() {
  run figures $((LIMIT - SECONDS)) "$PYTHON" -m benchmarks.lookup figures --device "$DEVICE" \
    --out "$RESULTS/figures" --seconds "$figure_seconds" \
    --within $((LIMIT - SECONDS > 60 ? LIMIT - SECONDS - 40 : 20)) "${quick[@]}"
}

for step in "${STEPS[@]}"; do
  is_wanted "$step" || continue
  if [ "$step" != install ] && ! can_import nescio; then
    skip "$step" "the package nescio is not installed"
    failed+=("$step (nescio is not installed)")
  else
    "step_$step"
  fi
done
pack
printf '\n== %s s; log: %s, results: %s\n' "$SECONDS" "$OUT/gpu.log" "$OUT/results.tar.gz"
[ ${#left_out[@]} = 0 ] || printf 'left out: %s\n' "${left_out[@]}"
[ ${#failed[@]} = 0 ] || printf 'FAILED: %s\n' "${failed[@]}"
exec >&- 2>&-
wait "$log"  # for the end of the log
exit ${#failed[@]}
