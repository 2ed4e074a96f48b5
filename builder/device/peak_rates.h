// What a GPU can do at most: the roofline that regions are held against.
#pragma once
#include "builder/device/device.h"
#include "formats/report/report.h"

namespace kiln {

// The published rates of GPUs that are known by name. For others they follow from the number of
// multiprocessors, the highest clocks and the memory bus, with what a multiprocessor of that
// compute capability does in a cycle. 0 is unknown. The host has none.
report::PeakRates peak_rates(const DeviceInfo& device);

}  // namespace kiln
