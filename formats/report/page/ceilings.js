// What the device allows at most, and what holds each region back.

// The field of the peak rates that bounds products in a precision.
const kRateFields = {
  f32: 'f32_flops_per_s',
  tf32: 'tf32_flops_per_s',
  f16: 'f16_flops_per_s',
  bf16: 'f16_flops_per_s'
};

function rateField(precision) {
  return kRateFields[precision] ??
      (/^([iu]8|f8)/.test(precision) ? 'byte_flops_per_s' : 'f32_flops_per_s');
}

// Where the report knows no peak rates, the best that any region reached stands in for them.
// floorUs is the shortest region's time: what starting one costs here, whatever it does.
function makeCeilings(digested) {
  const regions =
      digested.points.flatMap((point) => point.regions).filter((region) => region.us > 0);
  const most = (values) => values.reduce((a, b) => Math.max(a, b), 0);
  const peak = digested.build.peak_rates;
  const measured = {
    bytesPerSecond: most(regions.map((region) => region.bytesPerSecond)),
    flopsPerSecond: most(regions.map((region) => region.flopsPerSecond))
  };
  const published = peak.bytes_per_s > 0;
  return {
    published,
    source: peak.source,
    measured,
    floorUs: regions.reduce((least, region) => Math.min(least, region.us), Infinity),
    bytesPerSecond: published ? peak.bytes_per_s : measured.bytesPerSecond,
    flopsPerSecond: (precision) => {
      const rate = published ? peak[rateField(precision)] : 0;
      return rate > 0 ? rate : measured.flopsPerSecond;
    },
  };
}

// idealUs: the least time that the ceilings allow. bound: what it would be held by at that speed.
// The report's own judgement goes first.
function place(region, ceilings) {
  const flopsPerSecond = ceilings.flopsPerSecond(region.precision_realised);
  const memoryUs = ceilings.bytesPerSecond > 0 ? region.bytes / ceilings.bytesPerSecond * 1e6 : 0;
  const computeUs = flopsPerSecond > 0 ? region.flops / flopsPerSecond * 1e6 : 0;
  const fromReport = region.roofline_share > 0;
  region.idealUs = fromReport ? region.us * region.roofline_share : Math.max(memoryUs, computeUs);
  region.roof = fromReport ? region.roofline_share :
      region.us > 0        ? region.idealUs / region.us :
                             NaN;
  const bound = region.roofline_bound || (memoryUs >= computeUs ? 'memory' : 'compute');
  region.bound = region.us > 0 ? (region.idealUs < ceilings.floorUs ? 'overhead' : bound) : 'none';
}
