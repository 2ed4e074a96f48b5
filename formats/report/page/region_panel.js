// All that is known of one region at one point: what it is, what it could have been, why it is not.

const kVerdicts = {
  chosen: 'chosen',
  slower: 'slower',
  wrong: 'wrong result',
  failed: 'failed',
  skipped: 'not measured'
};

function kindLabel(kind) {
  return el('span', {class: 'kind kind-' + kind.replace(/\W+/g, '-')}, kind);
}

// The median as a bar, the spread around its end.
function timeBar(candidate, slowest) {
  if (!(candidate.median_us > 0)) return el('span', {class: 'bar'});
  const width = (us) => Math.min(100, 100 * us / slowest) + '%';
  const {median_us: median, spread_us: spread} = candidate;
  return el(
      'span', {class: 'bar', title: 'spread ± ' + timeText(spread)},
      el('i', {class: 'fill', style: {width: width(median)}}), el('i', {
        class: 'spread',
        style: {left: width(Math.max(0, median - spread)), width: width(2 * (spread ?? 0))}
      }));
}

function candidateRow(candidate, slowest) {
  const timed = candidate.median_us > 0;
  return el(
      'tbody', {class: 'candidate ' + candidate.verdict},
      el('tr', {},
         el('th', {scope: 'row'}, el('b', {}, candidate.provider), ' ',
            el('code', {}, candidate.key)),
         el('td', {class: 'number', 'data-us': candidate.median_us},
            timed ? timeText(candidate.median_us) : kUnknown),
         el('td', {class: 'number'}, timed ? '± ' + timeText(candidate.spread_us) : kUnknown),
         el('td', {
           class: 'number',
           title: 'largest absolute error; relative ' + errorText(candidate.max_rel_error)
         },
            candidate.verdict === 'skipped' || candidate.verdict === 'failed' ?
                kUnknown :
                errorText(candidate.max_abs_error)),
         el('td', {class: 'number'},
            candidate.workspace_bytes ? bytesText(candidate.workspace_bytes) : '')),
      el('tr', {class: 'why'},
         el('td', {colspan: 5}, timeBar(candidate, slowest),
            el('span', {class: 'verdict'}, kVerdicts[candidate.verdict] ?? candidate.verdict),
            candidate.reason && ' · ' + candidate.reason)));
}

function candidateTable(region) {
  const times = region.candidates.map((candidate) => candidate.median_us).filter((us) => us > 0);
  // A few very slow ones would flatten the bars of all others.
  const slowest = Math.min(
      times.reduce((a, b) => Math.max(a, b), 0),
      6 * times.reduce((a, b) => Math.min(a, b), Infinity));
  const rank = {chosen: 0, slower: 1, wrong: 2, failed: 3, skipped: 4};
  const ordered = [...region.candidates].sort(
      (a, b) => rank[a.verdict] - rank[b.verdict] || (a.median_us ?? 0) - (b.median_us ?? 0));
  return el(
      'table', {class: 'candidates'},
      el('thead', {},
         el('tr', {},
            ['Candidate', 'Median', 'Spread', 'Error', 'Workspace'].map(
                (title, i) => el('th', {scope: 'col', class: i > 0 && 'number'}, title)))),
      ordered.map((candidate) => candidateRow(candidate, slowest)));
}

function factList(facts) {
  return el(
      'dl', {class: 'facts'},
      facts.filter(([, value]) => value !== '' && value !== null && value !== undefined)
          .map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value))));
}

function typesText(types) {
  const arrow = types.indexOf('->');
  return arrow < 0 ? types.join(', ') :
                     types.slice(0, arrow).join(', ') + ' → ' + types.slice(arrow + 1).join(', ');
}

function precisionText(region) {
  const asked = region.precision_asked && region.precision_asked !== region.precision_realised ?
      ', asked for ' + region.precision_asked + ': ' +
          (region.precision_reason || 'no reason given') :
      '';
  const damage = region.precision_damage >= 0 ?
      '; narrow alone it takes ' + errorText(region.precision_damage) + ' off the cosine' :
      '';
  return region.precision_realised + asked + damage;
}

function regionFacts(region) {
  return factList([
    ['Time', timeText(region.us) + ', ' + percentText(region.time_share) + ' of the point'],
    [
      'Roofline',
      region.us > 0 &&
          el('span', {}, percentText(region.roof) + ' of the ceiling, ',
             el('span', {class: 'bound-' + region.bound}, region.bound + ' bound'))
    ],
    [
      'Rates',
      region.us > 0 ?
          rateText(region.bytesPerSecond, 'B') + ', ' + rateText(region.flopsPerSecond, 'FLOP') :
          ''
    ],
    [
      'Work',
      bytesText(region.bytes_read) + ' read, ' + bytesText(region.bytes_written) + ' written, ' +
          flopsText(region.flops)
    ],
    ['Types', el('code', {}, typesText(region.types))],
    ['Precision', precisionText(region)],
    ['Formed by', region.rule || 'a single operation'],
    ['On the host', region.host_reason],
  ]);
}

function overPoints(engine, layer) {
  const most = layer.cells.reduce((a, cell) => Math.max(a, cell?.us || 0), 0);
  return el(
      'div', {class: 'over-points', role: 'group', 'aria-label': 'Shape points'},
      engine.points.map((point) => {
        const cell = layer.cells[point.index];
        return el(
            'button', {
              type: 'button',
              disabled: !cell,
              'aria-pressed': String(point.index === state.point),
              title: cell?.tactic,
              onclick: () => change({point: point.index})
            },
            el('i', {style: {height: (most > 0 ? 36 * (cell?.us || 0) / most : 0) + 'px'}}),
            el('b', {}, point.name), cell ? timeText(cell.us) : kUnknown);
      }));
}

function regionPanel(engine, layer) {
  const region = layer.cells[state.point];
  const close =
      el('button', {
        type: 'button',
        class: 'close',
        onclick: () => change({layer: -1}),
        title: 'Close (Esc)',
        'aria-label': 'Close'
      },
         '×');
  const content = [
    el('div', {class: 'panel-head'}, el('div', {}, kindLabel(layer.kind), el('h2', {}, layer.name)),
       close),
    overPoints(engine, layer)
  ];
  if (!region) return [...content, el('p', {}, 'It is not a region at this point.')];
  return [
    ...content, regionFacts(region), el('h3', {}, countText(region.candidates.length, 'candidate')),
    candidateTable(region), el('h3', {}, 'From ' + countText(region.origins.length, 'ONNX node')),
    el('ul', {class: 'origins'},
       region.origins.map((origin) => el('li', {}, el('code', {}, origin)))),
    region.refusals.length > 0 && el('h3', {}, 'Offered nothing'),
    factList(region.refusals.map((refusal) => [refusal.provider, refusal.reason]))
  ].filter(Boolean);
}
