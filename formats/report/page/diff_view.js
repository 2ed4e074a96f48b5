// Two engines side by side. Regions are put together by the ONNX nodes that they come from, since
// another build may have fused them otherwise.

// Groups of regions of both points that share nodes, each as small as can be.
function pairRegions(a, b) {
  const parent = new Map();
  const root = (key) => {
    let at = key;
    while (parent.get(at) !== at) at = parent.get(at);
    while (parent.get(key) !== at) [key] = [parent.get(key), parent.set(key, at)];
    return at;
  };
  const touch = (key) => {
    if (!parent.has(key)) parent.set(key, key);
  };
  const keysOf = (region) => region.origins.length > 0 ?
      region.origins.map((name) => 'node ' + name) :
      ['region ' + region.name];
  const all = [...a.regions, ...b.regions];
  for (const region of all) {
    const keys = keysOf(region);
    keys.forEach(touch);
    for (const key of keys) parent.set(root(key), root(keys[0]));
  }
  const groups = new Map();
  const put = (side) => (region) => {
    const key = root(keysOf(region)[0]);
    if (!groups.has(key)) groups.set(key, {a: [], b: []});
    groups.get(key)[side].push(region);
  };
  a.regions.forEach(put('a'));
  b.regions.forEach(put('b'));
  return [...groups.values()].map(describePair);
}

function describePair({a, b}) {
  const sum = (regions) => regions.reduce((us, region) => us + (region.us || 0), 0);
  const tactics = (regions) => regions.map((region) => region.tactic).join(' | ') || kUnknown;
  const pair = {
    a,
    b,
    aUs: sum(a),
    bUs: sum(b),
    aTactic: tactics(a),
    bTactic: tactics(b),
    name: (b[0] ?? a[0]).name,
    get text() {
      return [...a, ...b].map((region) => region.text).join('\n');
    }
  };
  pair.delta = pair.bUs - pair.aUs;
  const types = (regions) => regions.map((region) => region.precision_realised).join(' ');
  pair.change = a.length === 0      ? 'only in B' :
      b.length === 0                ? 'only in A' :
      a.length !== b.length         ? a.length + ' → ' + b.length + ' regions' :
      types(a) !== types(b)         ? 'precision' :
      pair.aTactic !== pair.bTactic ? 'tactic' :
                                      '';
  return pair;
}

function deltaCell(us, base) {
  const tone = Math.abs(us) < 0.02 * base ? '' : us > 0 ? 'bad' : 'good';
  return el('span', {class: tone, 'data-us': us}, signedTime(us));
}

function pairColumns() {
  const text = (title, width, field) => ({
    title,
    width,
    value: (pair) => pair[field],
    cell: (pair) => nameCell(pair[field], shortName(pair[field]) || kUnknown)
  });
  return [
    {
      title: 'B − A',
      width: '96px',
      number: true,
      value: (pair) => pair.delta,
      cell: (pair) => deltaCell(pair.delta, pair.aUs)
    },
    {
      title: 'A',
      width: '84px',
      number: true,
      value: (pair) => pair.aUs,
      cell: (pair) => pair.a.length > 0 ? timeText(pair.aUs) : kUnknown
    },
    {
      title: 'B',
      width: '84px',
      number: true,
      value: (pair) => pair.bUs,
      cell: (pair) => pair.b.length > 0 ? timeText(pair.bUs) : kUnknown
    },
    {
      title: 'B / A',
      width: '72px',
      number: true,
      value: (pair) => pair.bUs / pair.aUs,
      cell: (pair) =>
          pair.aUs > 0 && pair.b.length > 0 ? (pair.bUs / pair.aUs).toFixed(2) : kUnknown
    },
    text('Changed', '120px', 'change'),
    text('A\'s tactic', 'minmax(150px, 0.8fr)', 'aTactic'),
    text('B\'s tactic', 'minmax(150px, 0.8fr)', 'bTactic'),
    text('Region', 'minmax(220px, 1.2fr)', 'name'),
  ];
}

function openPair(pair, name = engines[state.engine].points[state.point].name) {
  const engine = pair.b.length > 0 ? 1 : 0, region = pair.b[0] ?? pair.a[0];
  change({
    engine,
    layer: region.layer.index,
    point: engines[engine].points.findIndex((point) => point.name === name)
  });
}

function totalsTable(a, b) {
  const names = [...new Set([...a.points, ...b.points].map((point) => point.name))];
  return el(
      'table', {class: 'plain'},
      el('thead', {},
         el('tr', {},
            ['Point', 'A', 'B', 'B − A', 'B / A', 'A\'s arena', 'B\'s arena', 'Regions'].map(
                (title, i) => el('th', {scope: 'col', class: i > 0 && 'number'}, title)))),
      el('tbody', {}, names.map((name) => {
        const [x, y] = [a, b].map((engine) => engine.points.find((point) => point.name === name));
        // Like with like: a graph's time only beside another graph's.
        const field = x?.graph_us > 0 && y?.graph_us > 0 ? 'graph_us' : 'sum_us';
        const cells = [
          x ? timeText(x[field]) : kUnknown, y ? timeText(y[field]) : kUnknown,
          x && y ? deltaCell(y[field] - x[field], x[field]) : kUnknown,
          x && y ? (y[field] / x[field]).toFixed(3) : kUnknown,
          x ? bytesText(x.memory.arena_bytes) : kUnknown,
          y ? bytesText(y.memory.arena_bytes) : kUnknown,
          (x?.regions.length ?? kUnknown) + ' → ' + (y?.regions.length ?? kUnknown)
        ];
        return el(
            'tr', {}, el('th', {scope: 'row'}, name),
            cells.map((cell) => el('td', {class: 'number'}, cell)));
      })));
}

function buildDifferences(a, b) {
  const facts = ({build, weightsBytes}) => ({
    Model: build.model_name,
    Hash: build.model_hash,
    Kiln: build.kiln_version,
    Target: build.target,
    Device: build.device,
    Precision: build.precision,
    Verified: String(build.verified),
    'Passes left out': build.disabled_passes.join(', '),
    Weights: bytesText(weightsBytes),
    ...Object.fromEntries(build.versions)
  });
  const x = facts(a), y = facts(b);
  const rows = [...new Set([...Object.keys(x), ...Object.keys(y)])]
                   .filter((key) => x[key] !== y[key])
                   .map((key) => [key, (x[key] || kUnknown) + ' → ' + (y[key] || kUnknown)]);
  return rows.length > 0 ?
      factList(rows) :
      el('p', {class: 'nothing'}, 'Built from the same model in the same way.');
}

function diffView() {
  const [a, b] = engines, name = engines[state.engine].points[state.point]?.name;
  const [x, y] = [a, b].map((engine) => engine.points.find((point) => point.name === name));
  const pairs =
      x && y ? pairRegions(x, y).sort((p, q) => Math.abs(q.delta) - Math.abs(p.delta)) : [];
  return el(
      'div', {class: 'stack'},
      section('Two engines', null, factList([['A', a.file], ['B', b.file]]), totalsTable(a, b)),
      section('What differs in the builds', null, buildDifferences(a, b)),
      section(
          'B − A by batch', 'Regions that share ONNX nodes are one row, however they were fused.',
          diffMatrix(a, b)),
      section(
          'Regions of ' + name,
          'Regions that share ONNX nodes are one line. The largest differences first.',
          pairs.length === 0 ? el('p', {class: 'nothing'}, 'Only one of the two has this point.') :
                               makeSearchedGrid({
                                 label: 'diff',
                                 columns: pairColumns(),
                                 rows: pairs,
                                 text: (pair) => pair.text,
                                 open: (pair) => openPair(pair)
                               })));
}
