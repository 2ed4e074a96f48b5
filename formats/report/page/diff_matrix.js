// What changed from one engine to the other at every point: regions down, points across.

// Rows of pairs that go by one name, over the points that both engines have.
function pairRows(a, b) {
  const points = a.points.map((x) => [x, b.points.find((y) => y.name === x.name)])
                     .filter(([, y]) => y !== undefined);
  const rows = new Map();
  points.forEach(([x, y], at) => {
    const seen = new Map();
    for (const pair of pairRegions(x, y)) {
      const repeat = seen.get(pair.name) ?? 0, key = pair.name + '\n' + repeat;
      seen.set(pair.name, repeat + 1);
      if (!rows.has(key)) rows.set(key, {name: pair.name, cells: points.map(() => null)});
      rows.get(key).cells[at] = pair;
    }
  });
  return {names: points.map(([x]) => x.name), rows: [...rows.values()]};
}

function deltaMatrixCell(pair, most) {
  if (!pair) return el('span', {class: 'cell absent'}, '');
  const tone = pair.delta > 0 ? 'slower' : pair.delta < 0 ? 'faster' : '';
  return el(
      'span', {
        class: 'cell ' + tone,
        'data-us': pair.delta,
        style: {'--strength': Math.sqrt(Math.abs(pair.delta) / most)},
        title: timeText(pair.aUs) + ' → ' + timeText(pair.bUs) + ' · ' +
            (pair.change || 'the same tactic')
      },
      signedTime(pair.delta),
      pair.change &&
          el('i', {class: 'changed ' + (pair.change === 'tactic' ? 'key' : 'provider')}));
}

function diffMatrix(a, b) {
  const {names, rows} = pairRows(a, b);
  const deltas = rows.flatMap((row) => row.cells.map((pair) => Math.abs(pair?.delta ?? 0)));
  const most = deltas.reduce((x, y) => Math.max(x, y), 0) || 1;
  const columns = [
    {
      title: 'Region',
      width: 'minmax(260px, 1fr)',
      value: (row) => row.name,
      cell: (row) => nameCell(row.name, shortName(row.name))
    },
    ...names.map((name, at) => ({
                   title: name,
                   width: '92px',
                   number: true,
                   value: (row) => row.cells[at]?.delta ?? NaN,
                   tone: () => 'heated',
                   open: (row) => row.cells[at] && openPair(row.cells[at], name),
                   cell: (row) => deltaMatrixCell(row.cells[at], most)
                 }))
  ];
  return el(
      'div', {}, makeGrid({label: 'diff matrix', columns, rows}).box,
      el('span', {class: 'legend'},
         [['faster', 'B is faster'], ['slower', 'B is slower']].map(
             ([tone,
               label]) => [el('i', {class: 'swatch ' + tone, style: {'--strength': 1}}), label]),
         el('span', {class: 'cell sample'}, el('i', {class: 'changed provider'})),
         'fused or rounded otherwise',
         el('span', {class: 'cell sample'}, el('i', {class: 'changed key'})), 'another tactic'));
}
