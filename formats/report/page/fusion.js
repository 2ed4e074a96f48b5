// What was fused by which rule, and what nearly was.

function nearMissCards(engine, point) {
  const misses =
      point.near_misses.map((miss) => ({miss, cost: missCost(point, miss, engine.ceilings)}))
          .sort((a, b) => (b.cost.us || 0) - (a.cost.us || 0));
  if (misses.length === 0)
    return el('p', {class: 'nothing'}, 'No pair of regions came near to being one.');
  const columns = [
    {
      title: 'Costs at most',
      width: '110px',
      number: true,
      value: ({cost}) => cost.us,
      cell: ({cost}) => timeText(cost.us)
    },
    {
      title: 'Through memory',
      width: '136px',
      number: true,
      value: ({cost}) => cost.bytes,
      cell: ({cost}) => bytesText(cost.bytes)
    },
    ...[['Producer', 'producer'], ['Consumer', 'consumer'], ['Rule', 'rule'], ['Why not', 'reason']]
        .map(
            ([title, field]) => ({
              title,
              width: {rule: '150px', reason: 'minmax(260px, 1.8fr)'}[field] ?? 'minmax(180px, 1fr)',
              value: ({miss}) => miss[field],
              cell: ({miss}) => nameCell(miss[field])
            })),
  ];
  return makeGrid({
           label: 'near misses',
           columns,
           rows: misses,
           open: ({cost}) => cost.producer && openRegion(cost.producer)
         })
      .box;
}

function ruleTable(point) {
  const rules = new Map();
  for (const region of point.regions) {
    const rule = region.rule || 'single operations';
    const sum = rules.get(rule) ?? {regions: 0, nodes: 0, us: 0};
    sum.regions += 1;
    sum.nodes += region.origins.length;
    sum.us += region.us || 0;
    rules.set(rule, sum);
  }
  const rows = [...rules].sort((a, b) => b[1].us - a[1].us);
  return el(
      'table', {class: 'plain'},
      el('thead', {},
         el('tr', {},
            ['Rule', 'Regions', 'ONNX nodes in them', 'Time'].map(
                (title, i) => el('th', {scope: 'col', class: i > 0 && 'number'}, title)))),
      el('tbody', {}, rows.map(([rule, sum]) => el('tr', {}, el('th', {scope: 'row'}, rule), [
                                 sum.regions, sum.nodes, timeText(sum.us)
                               ].map((text) => el('td', {class: 'number'}, text))))));
}

function fusionView(engine, point) {
  return el(
      'div', {class: 'stack'},
      section(
          'Nearly fused at ' + point.name,
          'Pairs that could have been one region. The cost is the value between them, ' +
              'written and read back at the ' +
              'memory ceiling, and one more kernel to start; it is an upper bound.',
          nearMissCards(engine, point)),
      section('Fused', null, ruleTable(point)));
}
