#pragma once

// A thread's view of its block on an NVIDIA GPU: each function of gpu/thread_block.h is one
// instruction, or its replacement on an older GPU. Compiled by nvcc only.

#include <cuda_pipeline_primitives.h>

#include "gpu/thread_block.h"

namespace nescio::gpu {

class CudaBlock {
 public:
  static constexpr unsigned kAll = 0xFFFFFFFF;

  __device__ std::uint32_t x() const { return blockIdx.x; }
  __device__ std::uint32_t y() const { return blockIdx.y; }
  __device__ unsigned thread() const { return threadIdx.x; }
  __device__ unsigned warp() const { return threadIdx.x / kWarp; }
  /// Read from a register: ptxas would compute it again from the thread at every use.
  __device__ unsigned lane() const {
    unsigned lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
  }
  __device__ std::byte* shared() const {
    extern __shared__ Quad memory[];
    return reinterpret_cast<std::byte*>(memory);
  }

  __device__ void sync() { __syncthreads(); }
  __device__ std::uint32_t shuffle_xor(std::uint32_t value, unsigned mask) {
    return __shfl_xor_sync(kAll, value, static_cast<int>(mask));
  }
  __device__ std::uint32_t ballot(bool bit) { return __ballot_sync(kAll, bit); }

  __device__ void load_words(std::uint32_t (&out)[4], const Quad* quad) {
    const auto address = static_cast<unsigned>(__cvta_generic_to_shared(quad));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(address)
                 : "memory");
  }

  /// Plans choose it only on GPUs that have it.
  __device__ void multiply_bits(std::uint32_t (&c)[4], const std::uint32_t (&a)[4],
                                const std::uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
    asm volatile(
        "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    __trap();
#endif
  }

  __device__ void multiply_bytes(std::uint32_t (&c)[4], const std::uint32_t (&a)[4],
                                 const std::uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    for (int half = 0; half < 2; ++half) {
      for (int rows = 0; rows < 2; ++rows) {
        asm volatile(
            "mma.sync.aligned.m8n8k16.row.col.s32.u8.u8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+r"(c[2 * rows]), "+r"(c[2 * rows + 1])
            : "r"(a[2 * half + rows]), "r"(b[half]));
      }
    }
#endif
  }

  __device__ static std::uint32_t dot_bytes(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return __dp4a(a, b, c);
  }
  __device__ static std::uint32_t count_ones(std::uint32_t x) {
    return static_cast<std::uint32_t>(__popc(x));
  }
  __device__ static double multiply_add(double a, double b, double c) { return __fma_rn(a, b, c); }
  __device__ static float multiply_add(float a, float b, float c) { return __fmaf_rn(a, b, c); }

  __device__ static void atomic_add(std::uint32_t* to, std::uint32_t value) {
    atomicAdd(to, value);
  }
  __device__ static void atomic_add(std::uint64_t* to, std::uint64_t value) {
    static_assert(sizeof(unsigned long long) == sizeof(std::uint64_t));
    atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(value));
  }
  __device__ static void atomic_xor(std::uint32_t* to, std::uint32_t value) {
    atomicXor(to, value);
  }

  __device__ void copy_async(void* to, const void* from) {
    __pipeline_memcpy_async(to, from, sizeof(Quad));
  }
  __device__ void commit_copies() { __pipeline_commit(); }
  template <unsigned newest>
  __device__ void wait_copies() {
    __pipeline_wait_prior(newest);
  }
};

static_assert(ThreadBlock<CudaBlock>);

}  // namespace nescio::gpu
