// Runs a kernel in wider types than its tensors have: narrow floats in f32, 4-bit integers in 8
// bits. So kernels know native types only, and a narrow result is rounded once, at the end.
#pragma once
#include "engine/host/kernel.h"

namespace kiln::host {

// What a row of the kernel table says about its kernel.
enum class Storage : uint8_t {
  kAny,     // takes every dtype as it is
  kBytes,   // moves whole bytes: 4-bit types are unpacked for it
  kNative,  // computes in native types: narrow floats are widened too
};

// prepare(p), with conversions around it for tensors that `storage` excludes.
Result<KernelPtr> prepare_stored(const Prepare& p, PrepareFn prepare, Storage storage);

}  // namespace kiln::host
