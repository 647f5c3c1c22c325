#!/usr/bin/env bash
# Builds, tests and measures on the GPU of this machine, in one go and without a network:
#
#   benchmarks/gpu.sh                     all steps, on the first card
#   benchmarks/gpu.sh install figures     some of them, in their order
#   benchmarks/gpu.sh --emulated          the same on the emulated device, with sizes that mean nothing
#   benchmarks/gpu.sh --help              this
#
# It needs a C++ compiler, nvcc, and a Python with numpy, pytest, nanobind, scikit-build-core, cmake
# and ninja, into which the package is installed. Matplotlib draws the figures where it is there.
#
#   OUT=gpu-results     the folder for the log, the cases as JSON, and figures.tar.gz
#   LIMIT=530           seconds for all of it; the figures leave out what does not fit
#   DEVICE=cuda         the card
#   PYTHON=python3
#
# A step that fails does not stop the next; the exit code is the number of those that failed.
set -uo pipefail
cd "$(dirname "$0")/.."

STEPS=(install info test lookup quant sanitize figures)
OUT=${OUT:-gpu-results}
LIMIT=${LIMIT:-530}
DEVICE=${DEVICE:-cuda}
PYTHON=${PYTHON:-python3}
FIGURES=build/gpu-figures
failed=()

# What differs on the emulated device: nothing but sizes, and which tests.
rows_many=1048576 rows_few=16384
batches=1,8,64,512,1024,4096 batches_few=512,4096,16384 batch=512
row_bytes=256 cuda=ON seconds=0.5 figure_seconds=0.1 quick=() tests=(-m gpu)
ots=2^23 step_seconds=0.2
quant_sizes=512,1024,2048,4096 quant_count=200
emulate() {
  DEVICE=emulated rows_many=1500 rows_few=600 batches=1,3 batches_few=2,4 batch=3
  row_bytes=8 cuda=OFF seconds=0.01 figure_seconds=0.001 quick=(--quick)
  ots=100 step_seconds=0.001
  quant_sizes=64 quant_count=1
  tests=(-k "work_that_strategies or overwritten or no_keys or ways_to_grow or facts")
}

wanted=()
for argument in "$@"; do
  case " ${STEPS[*]} " in
    *" $argument "*) wanted+=("$argument") ;;
    *)
      [ "$argument" = --emulated ] && emulate && continue
      [ "$argument" = --help ] && sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" && exit 0
      echo "gpu.sh: there is no step '$argument'; there are: ${STEPS[*]}" >&2
      exit 2
      ;;
  esac
done
[ ${#wanted[@]} -gt 0 ] || wanted=("${STEPS[@]}")
[[ $LIMIT =~ ^[1-9][0-9]*$ ]] || { echo "gpu.sh: LIMIT: found '$LIMIT', expected seconds" >&2; exit 2; }
mkdir -p "$OUT" build || exit 1
OUT=$(cd "$OUT" && pwd)
export PYTHONUNBUFFERED=1
[ "$DEVICE" = emulated ] || export NESCIO_TEST_DEVICE=$DEVICE  # tests fail where it is not
exec > >(tee "$OUT/gpu.log") 2>&1
log=$!

# run NAME SECONDS COMMAND...: runs a command for so long at most, and says how it ended.
run() {
  local name=$1 most=$2 left=$((LIMIT - SECONDS)) begin=$SECONDS code
  shift 2
  printf '\n== %s\n$ %s\n' "$name" "$*"
  [ "$left" -gt 0 ] || { failed+=("$name (no time left)"); echo "no time left"; return; }
  timeout --kill-after=5 $((most < left ? most : left)) "$@"
  code=$?
  echo "-- $name: $([ $code = 0 ] && echo ok || echo "failed with $code"), $((SECONDS - begin)) s"
  [ $code = 0 ] || failed+=("$name ($([ $code = 124 ] && echo "ran out of time" || echo $code))")
}

can_import() { "$PYTHON" -c "import $1" 2> /dev/null; }

pytest=("$PYTHON" -m pytest -q -p no:cacheprovider)
# The project's settings have an option of a plugin; where it is not, that would be an error.
can_import pytest_timeout || pytest+=(-W ignore::pytest.PytestConfigWarning)

step_install() {
  run install 260 "$PYTHON" -m pip install --no-build-isolation --no-deps --no-index \
    --force-reinstall --disable-pip-version-check -C "cmake.define.NESCIO_CUDA=$cuda" .
}

step_info() { run info 30 "$PYTHON" -m nescio info; }

step_test() {
  local files=(tests/pir/test_answer_gpu.py)
  local more
  for more in tests/pir/test_devices.py tests/ot/test_device.py tests/ot/test_devices.py \
    tests/bitserial/test_device.py tests/bitserial/test_device_arguments.py \
    tests/quant/test_device.py tests/quant/torch/test_gpu.py; do
    [ ! -e "$more" ] || files+=("$more")
  done
  run test 150 "${pytest[@]}" "${tests[@]}" "${files[@]}"
  if can_import torch; then run test-compat 60 "${pytest[@]}" tests/compat; fi
}

step_lookup() {
  lookup million "--rows $rows_many --row-bytes $row_bytes --batch $batches --generator chacha20,aes128"
  lookup small "--rows $rows_few --row-bytes 64 --batch $batches_few --generator chacha20,aes128"
  lookup words "--rows $rows_many --row-bytes $row_bytes --batch $batch --output u8,u32 --generator chacha20,aes128"
  lookup paper "--rows $rows_many --row-bytes $row_bytes --batch $batch --output u128 --strategy bounded --generator aes128"
  run ot-steps 40 "$PYTHON" -m benchmarks.ot steps --n "$ots" --device "$DEVICE" \
    --seconds "$step_seconds" --json "$OUT/ot-steps.json"
}

# lookup NAME OPTIONS: one table of answers.
lookup() {
  # shellcheck disable=SC2086
  run "lookup-$1" 75 "$PYTHON" -m nescio bench lookup --device "$DEVICE" --seconds "$seconds" \
    --json "$OUT/lookup-$1.json" $2
}

# Table 3.1 of the thesis; then every kernel at one size, for the plan in core/bitserial/gpu/plan_gpu.h.
step_quant() {
  quant table "--size $quant_sizes"
  quant kernels "--size ${quant_sizes##*,} --weight-bits 1,4 --kernel count,count-fused,matrix,matrix-fused"
  quant batch "--size ${quant_sizes##*,} --weight-bits 1,4 --activation-bits 8 --batch 16"
}

# quant NAME OPTIONS: one table of products.
quant() {
  # shellcheck disable=SC2086
  run "quant-$1" 60 "$PYTHON" -m nescio.bench.quant_gpu --device "$DEVICE" --count "$quant_count" \
    --json "$OUT/quant-$1.json" $2
}

# A small part of the tests, with every access of memory, and of shared memory, watched.
step_sanitize() {
  local tool
  if [ "$DEVICE" = emulated ] || ! command -v compute-sanitizer > /dev/null; then
    printf '\n== sanitize\nleft out: %s\n' "there is no compute-sanitizer, or no card"
    return
  fi
  for tool in memcheck racecheck; do
    run "$tool" 50 compute-sanitizer --tool "$tool" --error-exitcode 86 "${pytest[@]}" -m gpu \
      tests/pir/test_answer_gpu.py -k "test_every_output_and_strategy and (bit or u32)"
    run "$tool-ot" 40 compute-sanitizer --tool "$tool" --error-exitcode 86 "${pytest[@]}" -m gpu \
      tests/ot/test_device.py -k "ways_to_grow or punctured_trees or (expand_convolute and 201)"
    run "$tool-quant" 40 compute-sanitizer --tool "$tool" --error-exitcode 86 "${pytest[@]}" -m gpu \
      tests/bitserial/test_device.py -k "test_shapes or (test_floats and (3 or 17))"
  done
}

step_figures() {
  rm -rf "$FIGURES"
  run figures $((LIMIT - SECONDS)) "$PYTHON" -m benchmarks.lookup figures --device "$DEVICE" \
    --out "$FIGURES" --json "$OUT/figures.json" --seconds "$figure_seconds" \
    --within $((LIMIT - SECONDS > 60 ? LIMIT - SECONDS - 40 : 20)) "${quick[@]}"
  [ ! -d "$FIGURES" ] || tar -czf "$OUT/figures.tar.gz" -C "$(dirname "$FIGURES")" \
    "$(basename "$FIGURES")"
}

for step in "${STEPS[@]}"; do
  case " ${wanted[*]} " in *" $step "*) "step_$step" ;; esac
done
printf '\n== %s s; results: %s\n' "$SECONDS" "$OUT"
[ ${#failed[@]} = 0 ] || printf 'FAILED: %s\n' "${failed[@]}"
exec >&- 2>&-
wait "$log"  # so that the log is whole
exit ${#failed[@]}
