#include "builder/device/peak_rates.h"

#include <string_view>

namespace kiln {
namespace {

struct Published {
  std::string_view name;        // the driver's begins so
  double terabytes;             // a second
  double f32, tf32, f16, byte;  // TFLOPS, dense
};

// NVIDIA's data sheets.
constexpr Published kPublished[] = {
    {"NVIDIA H200", 4.8, 67, 494, 989, 1979},
    {"NVIDIA H100 80GB HBM3", 3.35, 67, 494, 989, 1979},
    {"NVIDIA H100 PCIe", 2.0, 51, 378, 756, 1513},
    {"NVIDIA A100-SXM4-80GB", 2.039, 19.5, 156, 312, 624},
    {"NVIDIA L40S", 0.864, 91.6, 183, 362, 733},
};

struct PerCycle {
  uint32_t compute_capability;
  double f32, tf32, f16, byte;  // operations of one multiprocessor, a multiply-add counts 2
};

// CUDA's programming guide and NVIDIA's architecture papers.
constexpr PerCycle kPerCycle[] = {
    {75, 128, 0, 1024, 2048},   {80, 128, 1024, 2048, 4096}, {86, 256, 512, 1024, 2048},
    {89, 256, 512, 1024, 2048}, {90, 256, 2048, 4096, 8192}, {100, 256, 4096, 8192, 16384},
};

}  // namespace

report::PeakRates peak_rates(const DeviceInfo& device) {
  constexpr double kTera = 1e12, kTransfersPerClock = 2;
  report::PeakRates rates;
  if (device.target != plan::Target::kCuda) return rates;
  for (const Published& known : kPublished) {
    if (!device.name.starts_with(known.name)) continue;
    return {kTera * known.terabytes, kTera * known.f32,  kTera * known.tf32,
            kTera * known.f16,       kTera * known.byte, "published"};
  }
  rates.bytes_per_s =
      kTransfersPerClock * 1000.0 * device.memory_khz * (device.memory_bus_bits / 8.0);
  const double cycles = 1000.0 * device.sm_khz * device.multiprocessors;
  for (const PerCycle& row : kPerCycle) {
    if (row.compute_capability != device.compute_capability) continue;
    rates.f32_flops_per_s = cycles * row.f32;
    rates.tf32_flops_per_s = cycles * row.tf32;
    rates.f16_flops_per_s = cycles * row.f16;
    rates.byte_flops_per_s = cycles * row.byte;
  }
  if (rates.bytes_per_s > 0) rates.source = "from clocks";
  return rates;
}

}  // namespace kiln
