// Logarithmic and linear axes of the drawings.

function logScale(low, high, from, to) {
  const a = Math.log10(low), b = Math.log10(high);
  return (value) => from + (to - from) * (Math.log10(value) - a) / (b - a);
}

function linearScale(low, high, from, to) {
  return (value) => from + (to - from) * (value - low) / (high - low || 1);
}

function powersOfTen(low, high) {
  const powers = [];
  for (let p = Math.ceil(Math.log10(low) - 1e-9); p <= Math.log10(high) + 1e-9; ++p)
    powers.push(10 ** p);
  return powers;
}

// About `count` round numbers from 0 to `high`.
function roundTicks(high, count) {
  const raw = high / count, unit = 10 ** Math.floor(Math.log10(raw || 1));
  const step = [1, 2, 5, 10].map((m) => m * unit).find((s) => s >= raw) ?? 1, ticks = [];
  for (let value = 0; value <= high; value += step) ticks.push(value);
  return ticks;
}

function drawText(x, y, content, attributes) {
  return svg('text', {x, y, ...attributes}, content);
}
