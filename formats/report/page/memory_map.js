// Who occupies the arena when, and how many bytes live at each step against the lower bound.

const kMap = {
  width: 1100,
  height: 330,
  left: 74,
  right: 16,
  top: 12,
  bottom: 34
};
const kLive = {
  height: 120,
  top: 12,
  bottom: 22
};

// Bytes occupied at each step; what is taken over in place counts once.
function liveBytes(point) {
  const ranges = point.regions.map(() => []);
  for (const buffer of point.buffers) {
    for (let i = buffer.first_step; i <= buffer.last_step; ++i)
      ranges[i].push([buffer.offset, buffer.offset + buffer.bytes]);
  }
  return ranges.map((live) => {
    let bytes = 0, covered = 0;
    for (const [begin, end] of live.sort((a, b) => a[0] - b[0])) {
      bytes += Math.max(0, end - Math.max(begin, covered));
      covered = Math.max(covered, end);
    }
    return bytes;
  });
}

function bufferKind(buffer) {
  if (buffer.name.endsWith('(workspace)')) return 'workspace';
  if (buffer.name.endsWith('(temporary)')) return 'temporary';
  return buffer.in_place_of ? 'in-place' : 'value';
}

function byteAxis(most, y, left, right) {
  return roundTicks(most, 5).flatMap(
      (bytes) =>
          [svg('line', {class: 'rule', x1: left, x2: right, y1: y(bytes), y2: y(bytes)}),
           drawText(left - 8, y(bytes) + 4, bytesText(bytes), {'text-anchor': 'end'})]);
}

function arenaMap(point) {
  const {memory, buffers, regions} = point, steps = regions.length;
  const {width, height, left, right, top, bottom} = kMap;
  const x = linearScale(0, steps, left, width - right),
        y = linearScale(0, memory.arena_bytes, height - bottom, top);
  const marks = buffers.map(
      (buffer) => ({
        shape: svg('rect', {
          class: 'buffer ' + bufferKind(buffer),
          x: x(buffer.first_step),
          y: y(buffer.offset + buffer.bytes),
          width: Math.max(1, x(buffer.last_step + 1) - x(buffer.first_step)),
          height: Math.max(0.5, y(buffer.offset) - y(buffer.offset + buffer.bytes)),
          rx: 1
        }),
        tip: () => [el('b', {}, buffer.name),
                    el('span', {},
                       bytesText(buffer.bytes) + ' at ' + buffer.offset + ', steps ' +
                           buffer.first_step + ' to ' + buffer.last_step),
                    el('span', {}, 'written by ' + shortName(regions[buffer.first_step].name)),
                    buffer.in_place_of && el('span', {}, 'in place of ' + buffer.in_place_of)]
                       .filter(Boolean),
        open: () => openRegion(regions[buffer.first_step]),
      }));
  const drawing =
      svg('svg', {
        class: 'plot',
        viewBox: `0 0 ${width} ${height}`,
        role: 'img',
        'aria-label': 'Arena over steps'
      },
          byteAxis(memory.arena_bytes, y, left, width - right), marks.map((mark) => mark.shape),
          roundTicks(steps, 10).map(
              (step) =>
                  drawText(x(step), height - bottom + 16, String(step), {'text-anchor': 'middle'})),
          drawText(
              (left + width - right) / 2, height - 4, 'step',
              {class: 'axis', 'text-anchor': 'middle'}));
  makePickable(drawing, marks);
  return drawing;
}

function liveChart(point, live) {
  const {memory, regions} = point;
  const {width, left, right} = kMap, {height, top, bottom} = kLive;
  const most = Math.max(memory.arena_bytes, memory.lower_bound_bytes);
  const x = linearScale(0, live.length, left, width - right),
        y = linearScale(0, most * 1.05, height - bottom, top);
  const outline =
      live.map((bytes, step) => `L${x(step)} ${y(bytes)} L${x(step + 1)} ${y(bytes)}`).join(' ');
  const level = (bytes, label, kind) =>
      [svg('line',
           {class: 'level ' + kind, x1: left, x2: width - right, y1: y(bytes), y2: y(bytes)}),
       drawText(
           width - right - 4, y(bytes) + 14, label, {'text-anchor': 'end', class: 'roof-label'})];
  // A column a step, not seen but picked.
  const marks =
      regions.map((region, step) => ({
                    shape: svg('rect', {
                      class: 'step',
                      x: x(step),
                      y: top,
                      width: x(step + 1) - x(step),
                      height: height - bottom - top
                    }),
                    tip: () =>
                        [el('b', {}, shortName(region.name)),
                         el('span', {}, 'step ' + step + ', ' + bytesText(live[step]) + ' live')],
                    open: () => openRegion(region)
                  }));
  const drawing = svg(
      'svg', {
        class: 'plot',
        viewBox: `0 0 ${width} ${height}`,
        role: 'img',
        'aria-label': 'Live bytes over steps'
      },
      byteAxis(most, y, left, width - right),
      svg('path', {class: 'live', d: `M${x(0)} ${y(0)} ${outline} L${x(live.length)} ${y(0)} Z`}),
      level(
          memory.lower_bound_bytes, 'lower bound ' + bytesText(memory.lower_bound_bytes), 'bound'),
      marks.map((mark) => mark.shape));
  makePickable(drawing, marks);
  return drawing;
}

function memoryView(engine, point) {
  const {memory} = point;
  if (point.buffers.length === 0 || memory.arena_bytes === 0) {
    return section(
        'Memory of ' + point.name, null,
        el('p', {class: 'nothing'}, 'Nothing is kept in the arena.'));
  }
  const live = liveBytes(point), peak = live.reduce((a, b) => Math.max(a, b), 0);
  const over = memory.lower_bound_bytes > 0 ?
      (memory.arena_bytes / memory.lower_bound_bytes).toFixed(3) + ' times the lower bound' :
      '';
  return section(
      'Memory of ' + point.name,
      'Addresses up, steps to the right: a step is a region. Below: the bytes that live at each.',
      factList([
        ['Arena', bytesText(memory.arena_bytes) + (over && ', ' + over)],
        ['Lower bound', bytesText(memory.lower_bound_bytes)],
        ['Most bytes live', bytesText(peak) + ', at step ' + live.indexOf(peak)],
        ['Largest workspace', bytesText(memory.workspace_bytes)],
        ['Weights, beside the arena', bytesText(engine.weightsBytes)]
      ]),
      arenaMap(point), liveChart(point, live), el('span', {class: 'legend'}, [
        ['value', 'values'], ['in-place', 'in place'], ['temporary', 'temporaries'],
        ['workspace', 'workspaces']
      ].map(([kind, label]) => [el('i', {class: 'swatch buffer-' + kind}), label])));
}
