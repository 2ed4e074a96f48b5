// Quantities as people read them. Powers of 1000; a number that is not known is a dash.

const kUnknown = '–';

function known(value) {
  return typeof value === 'number' && Number.isFinite(value);
}

function timeText(us) {
  if (!known(us)) return kUnknown;
  if (Math.abs(us) >= 1e6) return (us / 1e6).toFixed(2) + ' s';
  if (Math.abs(us) >= 1000) return (us / 1000).toFixed(2) + ' ms';
  const size = Math.abs(us);
  return us.toFixed(size >= 10 || size === 0 ? 1 : size >= 1 ? 2 : 3) + ' µs';
}

function scaled(value, units) {
  let unit = 0;
  for (; value >= 1000 && unit + 1 < units.length; ++unit) value /= 1000;
  return value.toFixed(unit === 0 || value >= 100 ? 0 : 1) + ' ' + units[unit];
}

function bytesText(bytes) {
  return known(bytes) ? scaled(bytes, ['B', 'KB', 'MB', 'GB', 'TB']) : kUnknown;
}

function flopsText(flops) {
  return known(flops) ? scaled(flops, ['FLOP', 'KFLOP', 'MFLOP', 'GFLOP', 'TFLOP', 'PFLOP']) :
                        kUnknown;
}

// A rate of 0 is one that is not known.
function rateText(perSecond, unit) {
  if (!known(perSecond) || perSecond <= 0) return kUnknown;
  return scaled(perSecond, ['', 'K', 'M', 'G', 'T', 'P'].map((prefix) => prefix + unit + '/s'));
}

function percentText(share) {
  if (!known(share)) return kUnknown;
  return (100 * share).toFixed(share > 0 && share < 0.0995 ? 1 : 0) + ' %';
}

function errorText(error) {
  if (!known(error)) return 'not finite';
  return error === 0 ? '0' : error.toPrecision(2);
}

function signedTime(us) {
  return known(us) ? (us > 0 ? '+' : us < 0 ? '−' : '') + timeText(Math.abs(us)) : kUnknown;
}

function countText(count, noun) {
  return count + ' ' + noun + (count === 1 ? '' : 's');
}

// "/a/b/MatMul + /a/b/Add + /a/Mul" as "/a/b/MatMul + Add + Mul": without the folders that the
// first name has too.
function shortName(name) {
  const [first, ...others] = name.split(' + ');
  const shortened = others.map((other) => {
    let shared = 0;
    for (let i = 0; i < other.length && other[i] === first[i]; ++i)
      if (other[i] === '/') shared = i + 1;
    return other.slice(shared) || other;
  });
  return [first, ...shortened].join(' + ');
}
