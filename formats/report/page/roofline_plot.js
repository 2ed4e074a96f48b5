// Every region by its arithmetic intensity and speed, below the ceilings that hold it.

const kPlot = {
  width: 1100,
  height: 440,
  left: 74,
  right: 24,
  top: 18,
  bottom: 50
};
// Intensity given to regions without arithmetic: far left, where only the memory's roof matters.
const kLeastIntensity = 0.01;

function rooflineScales(regions, roofs, bytesPerSecond) {
  const {width, height, left, right, top, bottom} = kPlot;
  const xs = regions.map((region) => region.x), ys = regions.map((region) => region.y);
  const fold = (values, start, pick) => values.reduce((a, b) => pick(a, b), start);
  const lowX = fold(xs, 1, Math.min) / 2,
        highX = fold(xs, fold(roofs, 1, Math.max) / bytesPerSecond, Math.max) * 4;
  const lowY = fold(ys, 1e15, Math.min) / 2,
        highY = fold(ys, fold(roofs, 1, Math.max), Math.max) * 1.6;
  return {
    lowX,
    highX,
    lowY,
    highY,
    x: logScale(lowX, highX, left, width - right),
    y: logScale(lowY, highY, height - bottom, top)
  };
}

function rooflineAxes(scales) {
  const {width, height, left, right, top, bottom} = kPlot, parts = [];
  for (const x of powersOfTen(scales.lowX, scales.highX)) {
    parts.push(
        svg('line',
            {class: 'rule', x1: scales.x(x), x2: scales.x(x), y1: top, y2: height - bottom}),
        drawText(
            scales.x(x), height - bottom + 18, x >= 1 ? String(x) : x.toPrecision(1),
            {'text-anchor': 'middle'}));
  }
  for (const y of powersOfTen(scales.lowY, scales.highY)) {
    parts.push(
        svg('line', {class: 'rule', x1: left, x2: width - right, y1: scales.y(y), y2: scales.y(y)}),
        drawText(
            left - 8, scales.y(y) + 4, rateText(y, '').trim().replace('/s', ''),
            {'text-anchor': 'end'}));
  }
  parts.push(
      drawText(
          (left + width - right) / 2, height - 8, 'FLOP per byte of memory traffic',
          {'text-anchor': 'middle', class: 'axis'}),
      drawText(0, 0, 'FLOP/s', {
        class: 'axis',
        'text-anchor': 'middle',
        transform: `translate(14 ${(top + height - bottom) / 2}) rotate(-90)`
      }));
  return parts;
}

// One roof: the memory's slope up to the plateau.
function roofLine(scales, {rate: flopsPerSecond, bytes: bytesPerSecond, label, kind}, above) {
  const ridge = Math.min(scales.highX, Math.max(scales.lowX, flopsPerSecond / bytesPerSecond));
  const start = Math.max(scales.lowX, scales.lowY / bytesPerSecond);
  const at = (x) => scales.x(x) + ' ' + scales.y(Math.min(flopsPerSecond, x * bytesPerSecond));
  const y = scales.y(Math.min(flopsPerSecond, scales.highX * bytesPerSecond));
  return [
    svg('path', {class: 'roof ' + kind, d: `M${at(start)} L${at(ridge)} L${at(scales.highX)}`}),
    drawText(
        kPlot.width - kPlot.right - 6, y + (above ? -6 : 15), label,
        {'text-anchor': 'end', class: 'roof-label ' + kind})
  ];
}

// Whether two plateaus are so near that the lower one's label would be on the upper one.
function isBeside(upper, roof) {
  return upper.rate > roof.rate && upper.rate < 4 * roof.rate;
}

function roofsOf(engine, point) {
  const {ceilings} = engine, roofs = [];
  if (ceilings.published) {
    const seen = new Set();
    for (const {precision_realised: precision, flops} of point.regions) {
      if (!/\d/.test(precision) || flops === 0) continue;  // moves bytes, or works on truth values
      const rate = ceilings.flopsPerSecond(precision);
      if (!seen.has(rate))
        roofs.push({
          rate,
          bytes: ceilings.bytesPerSecond,
          kind: 'peak',
          label: precision + ' ' + rateText(rate, 'FLOP') + ', ' +
              rateText(ceilings.bytesPerSecond, 'B')
        });
      seen.add(rate);
    }
  }
  const {measured} = ceilings;
  if (measured.bytesPerSecond > 0 && measured.flopsPerSecond > 0 && !ceilings.published) {
    roofs.push({
      rate: measured.flopsPerSecond,
      bytes: measured.bytesPerSecond,
      kind: 'measured',
      label: 'best measured ' + rateText(measured.flopsPerSecond, 'FLOP') + ', ' +
          rateText(measured.bytesPerSecond, 'B')
    });
  } else if (measured.flopsPerSecond > 0) {
    roofs.push({
      rate: measured.flopsPerSecond,
      bytes: ceilings.bytesPerSecond,
      kind: 'measured',
      label: 'best measured ' + rateText(measured.flopsPerSecond, 'FLOP')
    });
  }
  return roofs;
}

function rooflinePlot(engine, point) {
  const regions =
      point.regions.filter((region) => region.us > 0 && region.bytes > 0).map((region) => {
        const x = Math.max(kLeastIntensity, region.flops / region.bytes);
        return {region, x, y: x * region.bytesPerSecond};
      });
  const roofs = roofsOf(engine, point);
  if (regions.length === 0 || roofs.length === 0)
    return el('p', {class: 'nothing'}, 'No region was timed.');
  const scales =
      rooflineScales(regions, roofs.map((roof) => roof.rate), engine.ceilings.bytesPerSecond);
  regions.sort((a, b) => b.region.us - a.region.us);
  const marks = regions.map(
      ({region, x, y}) => ({
        shape: svg('circle', {
          class: 'dot bound-' + region.bound,
          cx: scales.x(x),
          cy: scales.y(y),
          r: 3 + 22 * Math.sqrt(region.time_share || 0)
        }),
        tip: () =>
            [...regionTip(region),
             el('span', {},
                percentText(region.roof) + ' of the ceiling, ' + region.bound + ' bound'),
             el('span', {},
                rateText(region.bytesPerSecond, 'B') + ', ' +
                    rateText(region.flopsPerSecond, 'FLOP'))],
        open: () => openRegion(region),
      }));
  const drawing = svg(
      'svg', {
        class: 'plot',
        viewBox: `0 0 ${kPlot.width} ${kPlot.height}`,
        role: 'img',
        'aria-label': 'Roofline of ' + countText(regions.length, 'region')
      },
      rooflineAxes(scales),
      roofs.map((roof) => roofLine(scales, roof, !roofs.some((other) => isBeside(other, roof)))),
      marks.map((mark) => mark.shape));
  makePickable(drawing, marks);
  return drawing;
}

function boundTable(point) {
  const sums = {memory: [0, 0, 0], compute: [0, 0, 0], overhead: [0, 0, 0]};
  for (const region of point.regions) {
    const sum = sums[region.bound];
    if (!sum) continue;
    sum[0] += 1;
    sum[1] += region.us;
    sum[2] += Math.min(region.us, region.idealUs);
  }
  return el(
      'table', {class: 'plain'},
      el('thead', {},
         el('tr', {},
            ['Bound by', 'Regions', 'Time', 'Share', 'At the ceilings'].map(
                (title, i) => el('th', {scope: 'col', class: i > 0 && 'number'}, title)))),
      el('tbody', {},
         Object.entries(sums).map(
             ([bound, [count, us, ideal]]) => el(
                 'tr', {}, el('th', {scope: 'row'}, el('span', {class: 'bound-' + bound}, bound)), [
                   count, timeText(us), percentText(us / point.sum_us), timeText(ideal)
                 ].map((text) => el('td', {class: 'number'}, text))))));
}

function rooflineView(engine, point) {
  const {ceilings} = engine;
  return section(
      'Roofline of ' + point.name,
      'The area of a dot is its share of the time. ' +
          'Overhead bound: at the ceilings it would take less than ' + timeText(ceilings.floorUs) +
          ', the shortest region of this report. Regions without arithmetic stand at the left. ' +
          'Above the slope: a cache served what is counted as memory.',
      rooflinePlot(engine, point), boundTable(point));
}
