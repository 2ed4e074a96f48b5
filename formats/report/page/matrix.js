// Layers down, shape points across, coloured by what a cell costs; a mark where the kernel differs
// from the one of the point before.

const kHeats = 10;
const kMetrics = {
  time: {title: 'Time', log: true, of: (cell) => cell.us, text: timeText},
  share:
      {title: 'Share of the point', log: false, of: (cell) => cell.time_share, text: percentText},
  row: {
    title: 'Time per row',
    log: true,
    text: timeText,
    of: (cell, point) => cell.us / Math.max(1, point.batch)
  },
  roof: {
    title: 'Distance from the roofline',
    log: false,
    text: (miss) => percentText(1 - miss),
    of: (cell) => cell.us > 0 ? 1 - Math.min(1, cell.roof) : NaN
  },
};

// 0 to kHeats - 1 over the values there are; logarithmic where they span magnitudes.
function heatScale(values, log) {
  const real = values.filter((value) => known(value) && (!log || value > 0));
  const map = log ? Math.log : (x) => x;
  const least = real.reduce((a, b) => Math.min(a, b), Infinity);
  const low = log ? map(least) : 0, high = map(real.reduce((a, b) => Math.max(a, b), -Infinity));
  return (value) => {
    if (!known(value) || (log && value <= 0)) return -1;
    if (!(high > low)) return 0;
    return Math.min(kHeats - 1, Math.floor((map(value) - low) / (high - low) * kHeats));
  };
}

// "" where the kernel is the one of the point before; else what changed.
function kernelChange(layer, index) {
  const now = layer.cells[index]?.winner;
  let before = null;
  for (let i = index - 1; i >= 0 && before === null; --i) before = layer.cells[i]?.winner ?? null;
  if (!now || !before) return '';
  if (now.provider !== before.provider) return 'provider';
  return now.key === before.key ? '' : 'key';
}

function matrixCell(layer, point, metric, scale) {
  const cell = layer.cells[point.index];
  if (!cell) return el('span', {class: 'cell absent', title: 'not a region at ' + point.name}, '');
  const value = metric.of(cell, point), heat = scale(value),
        changed = kernelChange(layer, point.index);
  return el(
      'span', {
        class: 'cell' + (heat < 0 ? '' : ' heat-' + heat),
        'data-us': cell.us,
        title: timeText(cell.us) + ' · ' + cell.tactic +
            (changed ? ' · another ' + changed + ' than before' : ''),
      },
      cell.winner ? metric.text(value) : '·',
      changed && el('i', {class: 'changed ' + changed, 'aria-label': 'another kernel'}));
}

function heatLegend() {
  return el(
      'span', {class: 'legend'}, 'less',
      el('span', {class: 'scale'},
         Array.from({length: kHeats}, (_, heat) => el('i', {class: 'swatch heat-' + heat}))),
      'more', el('span', {class: 'cell sample'}, el('i', {class: 'changed provider'})),
      'another provider', el('span', {class: 'cell sample'}, el('i', {class: 'changed key'})),
      'another kernel');
}

function matrixView(engine) {
  const metric = kMetrics[left.metric];
  const values = engine.layers.flatMap((layer) => engine.points.map((point) => {
    const cell = layer.cells[point.index];
    return cell ? metric.of(cell, point) : NaN;
  }));
  const scale = heatScale(values, metric.log);
  const valueAt = (layer, point) => {
    const cell = layer.cells[point.index];
    return cell ? metric.of(cell, point) : NaN;
  };
  const columns = [
    {
      title: 'Layer',
      width: 'minmax(260px, 1fr)',
      value: (layer) => layer.name,
      cell: (layer) => nameCell(layer.name, shortName(layer.name))
    },
    {
      title: 'Kind',
      width: '104px',
      value: (layer) => layer.kind,
      cell: (layer) => kindLabel(layer.kind)
    },
    ...engine.points.map((point) => ({
                           title: point.name,
                           width: '84px',
                           number: true,
                           hint: timeText(point.total) + ' at batch ' + point.batch,
                           value: (layer) => valueAt(layer, point),
                           tone: () => 'heated',
                           open: (layer) => change({layer: layer.index, point: point.index}),
                           cell: (layer) => matrixCell(layer, point, metric, scale),
                         })),
  ];
  const choices =
      Object.entries(kMetrics).map(([key, {title}]) => choice(title, key === left.metric, () => {
                                     left.metric = key;
                                     keepingFocus(render);
                                   }));
  return section(
      'Layers by batch',
      'Each row is a region, each column a shape point. Open a cell for its candidates.',
      makeSearchedGrid({
        label: 'matrix',
        columns,
        rows: engine.layers,
        text: (layer) => layer.text,
        open: (layer) => change({layer: layer.index}),
        tools: el('span', {class: 'choices', role: 'group', 'aria-label': 'Colour by'}, choices)
      }),
      heatLegend());
}
