// The regions of one point as a table to sort and search.

function regionColumns(point) {
  const most = point.regions.reduce((a, region) => Math.max(a, region.time_share || 0), 0) || 1;
  return [
    {
      title: '#',
      width: '52px',
      number: true,
      value: (region) => -region.index,
      cell: (region) => region.index
    },
    {
      title: 'Region',
      width: 'minmax(240px, 1.4fr)',
      value: (region) => region.name,
      cell: (region) => nameCell(region.name, shortName(region.name))
    },
    {
      title: 'Time',
      width: '84px',
      number: true,
      value: (region) => region.us,
      cell: (region) => el('span', {'data-us': region.us}, timeText(region.us))
    },
    {
      title: 'Share',
      width: '96px',
      number: true,
      value: (region) => region.time_share,
      cell: (region) =>
          el('span', {class: 'share', style: {'--share': (region.time_share ?? 0) / most}},
             percentText(region.time_share))
    },
    {
      title: 'Roofline',
      width: '78px',
      number: true,
      value: (region) => region.roof,
      hint: 'Least time that the ceilings allow, over the measured time',
      cell: (region) => region.us > 0 ? percentText(region.roof) : kUnknown
    },
    {
      title: 'Bound',
      width: '86px',
      value: (region) => region.bound,
      cell: (region) => el('span', {class: 'bound-' + region.bound}, region.bound)
    },
    {
      title: 'Kind',
      width: '104px',
      value: (region) => region.kind,
      cell: (region) => kindLabel(region.kind)
    },
    {
      title: 'Type',
      width: '56px',
      value: (region) => region.precision_realised,
      cell: (region) => region.precision_realised
    },
    {
      title: 'Tried',
      width: '60px',
      number: true,
      value: (region) => region.candidates.length,
      cell: (region) => region.candidates.length
    },
    {
      title: 'Tactic',
      width: 'minmax(160px, 0.8fr)',
      value: (region) => region.tactic,
      cell: (region) => nameCell(region.tactic)
    },
  ];
}

function openRegion(region) {
  change({layer: region.layer.index});
}

function regionsView(engine, point) {
  return section(
      'Regions of ' + point.name,
      'What runs, in the order it runs: one kernel or library call each.', makeSearchedGrid({
        label: 'regions',
        columns: regionColumns(point),
        rows: point.regions,
        text: (region) => region.text,
        open: openRegion
      }));
}

// Which region each ONNX node became part of.
function nodesView(engine, point) {
  const rows =
      point.regions.flatMap((region) => region.origins.map((origin) => ({origin, region})));
  const columns = [
    {
      title: 'ONNX node',
      width: 'minmax(240px, 1fr)',
      value: (row) => row.origin,
      cell: (row) => nameCell(row.origin)
    },
    {
      title: 'Region time',
      width: '100px',
      number: true,
      value: (row) => row.region.us,
      cell: (row) => timeText(row.region.us)
    },
    {
      title: 'Nodes in it',
      width: '90px',
      number: true,
      value: (row) => row.region.origins.length,
      cell: (row) => row.region.origins.length
    },
    {
      title: 'Rule',
      width: '190px',
      value: (row) => row.region.rule,
      cell: (row) => row.region.rule || kUnknown
    },
    {
      title: 'Region',
      width: 'minmax(240px, 1.2fr)',
      value: (row) => row.region.name,
      cell: (row) => nameCell(row.region.name, shortName(row.region.name))
    },
  ];
  return section(
      'ONNX nodes at ' + point.name,
      'Where each node of the model went. ' +
          'Nodes that folded into constants or vanished in cleaning have no row.',
      makeSearchedGrid({
        label: 'nodes',
        columns,
        rows,
        text: (row) => row.origin.toLowerCase() + '\n' + row.region.text,
        open: (row) => openRegion(row.region)
      }));
}
