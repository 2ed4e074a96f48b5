// How the engine was built and checked.

function verificationTable(engine) {
  const rows =
      engine.points.flatMap((point) => point.verification.map((check) => ({point, check})));
  if (rows.length === 0)
    return el(
        'p', {class: 'nothing'},
        'The report holds no comparison of the whole engine with its model.');
  return el(
      'table', {class: 'plain'},
      el('thead', {},
         el('tr', {},
            ['Point', 'Compared', 'Rows', 'Max abs error', 'Max rel error', 'Min cosine',
             ''].map((title, i) => el('th', {scope: 'col', class: i > 1 && 'number'}, title)))),
      el('tbody', {},
         rows.map(
             ({point, check}) =>
                 el('tr', {}, el('th', {scope: 'row'}, point.name),
                    el('td', {}, check.what, check.detail && el('small', {}, ' ' + check.detail)),
                    [
                      check.rows, errorText(check.max_abs_error), errorText(check.max_rel_error),
                      known(check.min_cosine) ? check.min_cosine.toFixed(6) : kUnknown
                    ].map((text) => el('td', {class: 'number'}, text)),
                    el('td', {class: check.passed ? 'good' : 'bad'},
                       check.passed ? 'passed' : 'FAILED')))));
}

function passTable(engine) {
  const names = [...new Set(engine.points.flatMap(
      (point) => point.passes.filter((pass) => pass.changed).map((pass) => pass.name)))];
  if (names.length === 0) return el('p', {class: 'nothing'}, 'No pass changed anything.');
  return el(
      'table', {class: 'plain'},
      el('thead', {},
         el('tr', {}, el('th', {scope: 'col'}, 'Rewrites by'),
            engine.points.map((point) => el('th', {scope: 'col', class: 'number'}, point.name)))),
      el('tbody', {},
         names.map(
             (name) =>
                 el('tr', {}, el('th', {scope: 'row'}, name),
                    engine.points.map(
                        (point) =>
                            el('td', {class: 'number'},
                               String(
                                   point.passes.filter((pass) => pass.name === name)
                                       .reduce((sum, pass) => sum + pass.rewrites, 0) ||
                                   '')))))));
}

function buildFacts(engine) {
  const {build} = engine, rates = build.peak_rates;
  return factList([
    ['Model', build.model_name],
    ['Hash', el('code', {}, build.model_hash)],
    ['Built by', 'Kiln ' + build.kiln_version],
    ['Target', build.target + ' (' + build.device + ')'],
    ['Compute capability', build.compute_capability],
    ['Precision', build.precision],
    ['Verified', build.verified ? 'yes' : 'NO'],
    ['Weights', bytesText(engine.weightsBytes)],
    ['Passes left out', build.disabled_passes.join(', ')],
    ...build.versions,
    [
      'Memory, at most',
      rates.bytes_per_s > 0 && rateText(rates.bytes_per_s, 'B') + ' (' + rates.source + ')' || ''
    ],
    ...[['f32', rates.f32_flops_per_s], ['TF32', rates.tf32_flops_per_s],
        ['f16', rates.f16_flops_per_s], ['8-bit', rates.byte_flops_per_s]]
        .map(([type,
               rate]) => [type + ' products, at most', rate > 0 ? rateText(rate, 'FLOP') : '']),
  ]);
}

function buildView(engine) {
  const seconds = engine.stages.reduce((sum, stage) => sum + stage.seconds, 0);
  return el(
      'div', {class: 'stack'},
      section(
          'Build', null, buildFacts(engine),
          engine.notes.length > 0 &&
              el('ul', {class: 'notes'}, engine.notes.map((note) => el('li', {}, note)))),
      section(
          'Verification',
          'The finished engine against the model as imported, one operation at a time.',
          verificationTable(engine)),
      engine.stages.length > 0 &&
          section(
              'Time of the build', seconds.toFixed(1) + ' s',
              stackedBar(
                  engine.stages.map(
                      (stage, i) =>
                          ({name: stage.name, value: stage.seconds, tone: 'stage-' + i % 4})),
                  seconds, (value) => value.toFixed(1) + ' s')),
      section('Passes', null, passTable(engine)));
}
