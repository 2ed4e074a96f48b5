// The first look: how fast, where the time goes, what to look at next.

function kindSums(point) {
  const sums = new Map();
  for (const region of point.regions)
    sums.set(region.kind, (sums.get(region.kind) ?? 0) + (region.us || 0));
  return [...sums].sort((a, b) => b[1] - a[1]);
}

function pointRow(point, most) {
  const checks = point.verification,
        passed = checks.length > 0 && checks.every((check) => check.passed);
  const over = point.memory.lower_bound_bytes > 0 ?
      point.memory.arena_bytes / point.memory.lower_bound_bytes :
      0;
  const parts = kindSums(point).map(
      ([name, value]) => ({name, value, tone: 'kind-' + name.replace(/\W+/g, '-')}));
  return el(
      'tr', {class: point.index === state.point && 'here'},
      el('th', {scope: 'row'},
         el('button', {type: 'button', class: 'link', onclick: () => change({point: point.index})},
            point.name)),
      el('td', {class: 'number', 'data-us': point.sum_us}, timeText(point.sum_us)),
      el('td', {class: 'number', 'data-us': point.graph_us},
         point.graph_us > 0 ? timeText(point.graph_us) : kUnknown),
      el('td', {class: 'number'}, point.batch > 0 ? timeText(point.total / point.batch) : kUnknown),
      el('td', {class: 'wide'},
         el('span',
            {class: 'scaled', style: {width: 100 * Math.max(0.02, point.sum_us / most) + '%'}},
            stackedBar(parts, most, timeText))),
      el('td', {class: 'number'}, point.regions.length),
      el('td', {class: 'number'}, bytesText(point.memory.arena_bytes),
         over > 1 && el('small', {}, ' ×' + over.toFixed(2))),
      el('td',
         {class: checks.length === 0 ? '' :
              passed                 ? 'good' :
                                       'bad'},
         checks.length === 0 ? kUnknown :
             passed          ? 'verified' :
                               'FAILED'));
}

function pointsTable(engine) {
  const most = engine.points.reduce((a, point) => Math.max(a, point.sum_us), 0) || 1;
  const titles =
      ['Point', 'Kernels', 'As one', 'Per row', 'Where it goes', 'Regions', 'Arena', 'Checked'];
  const hints = {
    Kernels: 'The chosen medians, each region run alone',
    'As one': 'The whole point on the device, as the engine runs it'
  };
  return el(
      'table', {class: 'plain points'},
      el('thead', {},
         el('tr', {},
            titles.map(
                (title, i) =>
                    el('th', {
                      scope: 'col',
                      class: [1, 2, 3, 5, 6].includes(i) && 'number',
                      title: hints[title]
                    },
                       title)))),
      el('tbody', {}, engine.points.map((point) => pointRow(point, most))));
}

function barList(rows, most) {
  return el(
      'ol', {class: 'bars'},
      rows.map(
          ({region, us, note}) => el(
              'li', {},
              el('button', {type: 'button', onclick: () => openRegion(region), title: region.name},
                 el('i', {style: {'--share': us / most}}), el('b', {}, timeText(us)),
                 el('span', {}, shortName(region.name)), el('small', {}, note)))));
}

// Regions that are the same work, such as those of equal layers, are one line.
function alike(items, keyOf, noteOf) {
  const groups = new Map();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group)
      group.push(item);
    else
      groups.set(keyOf(item), [item]);
  }
  return [...groups.values()]
      .map((group) => ({
             region: group[0].region,
             us: group.reduce((sum, item) => sum + item.us, 0),
             note: (group.length > 1 ?
                        group.length + ' alike, ' + timeText(group[0].us) + ' each · ' :
                        '') +
                 noteOf(group[0]),
           }))
      .sort((a, b) => b.us - a.us)
      .slice(0, 8);
}

function workKey(region) {
  return [region.kind, region.tactic, ...region.types].join('\n');
}

function headline(engine, point) {
  const ideal =
      point.regions.reduce((sum, region) => sum + Math.min(region.us || 0, region.idealUs), 0);
  const kernels = point.regions.filter((region) => region.us > 0).length;
  const nodes = new Set(point.regions.flatMap((region) => region.origins)).size;
  return el('div', {class: 'headline'}, [
    [
      timeText(point.total),
      point.graph_us > 0 ? 'at ' + point.name + ', as one graph' :
                           'at ' + point.name + ', sum of kernels'
    ],
    [
      percentText(ideal / point.sum_us),
      'of that would be left at the ' +
          (engine.ceilings.published ? 'peak rates' : 'best measured rates')
    ],
    [countText(kernels, 'kernel'), 'from ' + countText(nodes, 'ONNX node')],
    [
      bytesText(point.memory.arena_bytes),
      'arena, beside ' + bytesText(engine.weightsBytes) + ' weights'
    ],
  ].map(([figure, label]) => el('div', {}, el('b', {}, figure), el('span', {}, label))));
}

function overviewView(engine, point) {
  const slowest = alike(
      point.regions.filter((region) => region.us > 0).map((region) => ({region, us: region.us})),
      ({region}) => workKey(region), ({region}) => region.tactic);
  const gains = alike(
      gainsAt(engine, point), ({region, kind}) => kind + '\n' + workKey(region),
      ({kind, what}) => kind + ': ' + what);
  const most = (rows) => rows.reduce((a, row) => Math.max(a, row.us), 0) || 1;
  return el(
      'div', {class: 'stack'}, headline(engine, point),
      section('Shape points', null, pointsTable(engine)),
      el('div', {class: 'columns'},
         section('Takes most at ' + point.name, null, barList(slowest, most(slowest))),
         section('Would gain most at ' + point.name, null, barList(gains, most(gains)))));
}
