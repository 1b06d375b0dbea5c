// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
//
// As much of CUDA as the kernels need, on a CPU: the threads of a block are fibers that
// run in turn up to the next point where CUDA has them wait for each other. One block at
// a time, and made for tests, not for speed.

#pragma once

#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <vector>

#define __global__
#define __device__ inline
#define __host__
#define __forceinline__
#define __launch_bounds__(threads)
#define __shared__ static
#define __CUDACC__

using std::max;
using std::min;

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};

struct alignas(16) int4 {
  int32_t x, y, z, w;
};

inline dim3 gridDim, blockIdx, threadIdx;

namespace emulation {

constexpr int kMostThreads = 1024;
constexpr size_t kStack = 64 * 1024;

struct Fiber {
  ucontext_t context;
  std::vector<char> stack = std::vector<char>(kStack);
  bool done;
};

inline std::vector<Fiber> fibers(kMostThreads);
inline ucontext_t scheduler;
inline uint64_t exchanged[kMostThreads];
inline std::function<void()> kernel;

// All threads of the block get here before any goes on.
inline void wait_for_others() {
  swapcontext(&fibers[threadIdx.x].context, &scheduler);
}

inline void run_thread() {
  kernel();
  fibers[threadIdx.x].done = true;
}

inline void run_block(unsigned threads) {
  for (unsigned thread = 0; thread < threads; ++thread) {
    Fiber& fiber = fibers[thread];
    fiber.done = false;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link = &scheduler;
    makecontext(&fiber.context, run_thread, 0);
  }
  for (bool running = true; running;) {
    running = false;
    for (unsigned thread = 0; thread < threads; ++thread) {
      if (!fibers[thread].done) {
        threadIdx.x = thread;
        swapcontext(&scheduler, &fibers[thread].context);
        running |= !fibers[thread].done;
      }
    }
  }
}

// What `kernel<<<grid, threads>>>(...)` does.
inline void launch(dim3 grid, unsigned threads, std::function<void()> body) {
  kernel = std::move(body);
  gridDim = grid;
  for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y) {
    for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x) {
      run_block(threads);
    }
  }
}

}  // namespace emulation

inline void __syncthreads() { emulation::wait_for_others(); }

inline uint64_t __shfl_xor_sync(unsigned, uint64_t value, int distance) {
  emulation::exchanged[threadIdx.x] = value;
  emulation::wait_for_others();
  const uint64_t other = emulation::exchanged[threadIdx.x ^ distance];
  emulation::wait_for_others();
  return other;
}

template <class Value>
Value __ldg(const Value* place) {
  return *place;
}
