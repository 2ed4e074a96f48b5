// How much of the work runs in which precision, what was kept wide, and why.

function precisionSums(point) {
  return point.precision.map((share) => {
    const us = point.regions.filter((region) => region.precision_realised === share.precision)
                   .reduce((sum, region) => sum + (region.us || 0), 0);
    return {...share, us};
  });
}

function stackedBar(parts, total, text) {
  return el(
      'span', {class: 'stacked'},
      parts.filter((part) => part.value > 0)
          .map(
              (part) =>
                  el('i', {
                    class: part.tone,
                    style: {'flex-grow': part.value},
                    title: part.name + ': ' + text(part.value)
                  },
                     part.value / total > 0.13 ? part.name : '')));
}

function precisionTone(precision) {
  return 'precision-' +
      (/^(f32|tf32|f16|bf16)$/.test(precision) ? precision :
           /8/.test(precision)                 ? 'byte' :
                                                 'none');
}

function coverage(point) {
  const sums = precisionSums(point);
  const measures = [
    ['Time', 'us', timeText], ['Arithmetic', 'flops', flopsText], ['Bytes', 'bytes', bytesText],
    ['Regions', 'regions', String]
  ];
  return el('div', {class: 'coverage'}, measures.map(([title, field, text]) => {
    const total = sums.reduce((sum, share) => sum + share[field], 0);
    return [
      el('b', {}, title),
      stackedBar(
          sums.map((share) => ({
                     name: share.precision,
                     value: share[field],
                     tone: precisionTone(share.precision)
                   })),
          total, text)
    ];
  }));
}

function precisionTable(point) {
  return el(
      'table', {class: 'plain'},
      el('thead', {},
         el('tr', {},
            ['Precision', 'Regions', 'Time', 'Arithmetic', 'Bytes'].map(
                (title, i) => el('th', {scope: 'col', class: i > 0 && 'number'}, title)))),
      el('tbody', {},
         precisionSums(point).map(
             (share) => el('tr', {}, el('th', {scope: 'row'}, share.precision), [
               share.regions, timeText(share.us), flopsText(share.flops), bytesText(share.bytes)
             ].map((text) => el('td', {class: 'number'}, text))))));
}

function heldBack(point) {
  const rows = point.regions.filter(
      (region) => region.precision_damage >= 0 ||
          (region.precision_asked && region.precision_asked !== region.precision_realised &&
           region.precision_reason));
  if (rows.length === 0)
    return el(
        'p', {class: 'nothing'},
        'No region was kept wider than asked, and none was measured alone.');
  const columns = [
    {
      title: 'Asked',
      width: '70px',
      value: (region) => region.precision_asked,
      cell: (region) => region.precision_asked
    },
    {
      title: 'Runs in',
      width: '70px',
      value: (region) => region.precision_realised,
      cell: (region) => region.precision_realised
    },
    {
      title: 'Damage',
      width: '86px',
      number: true,
      value: (region) => region.precision_damage,
      hint: 'What it takes off the outputs\' cosine when it alone is narrow',
      cell: (region) => region.precision_damage >= 0 ? errorText(region.precision_damage) : kUnknown
    },
    {
      title: 'Time',
      width: '84px',
      number: true,
      value: (region) => region.us,
      cell: (region) => timeText(region.us)
    },
    {
      title: 'Why',
      width: 'minmax(220px, 1fr)',
      value: (region) => region.precision_reason,
      cell: (region) => nameCell(region.precision_reason, region.precision_reason || kUnknown)
    },
    {
      title: 'Region',
      width: 'minmax(220px, 1fr)',
      value: (region) => region.name,
      cell: (region) => nameCell(region.name, shortName(region.name))
    },
  ];
  return makeGrid({label: 'held back', columns, rows, open: openRegion}).box;
}

function precisionView(engine, point) {
  return el(
      'div', {class: 'stack'},
      section(
          'Precision at ' + point.name, 'Asked for: ' + engine.build.precision + '.',
          coverage(point), precisionTable(point)),
      section('Kept wide, or measured', null, heldBack(point)));
}
