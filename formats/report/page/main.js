// Puts the page together, and again whenever the address changes.

const engines = readReports();

const kViews = {
  ...(engines.length > 1 ? {diff: {title: 'Diff', make: diffView}} : {}),
  overview: {title: 'Overview', make: overviewView},
  layers: {title: 'Layers', make: matrixView},
  regions: {title: 'Regions', make: regionsView},
  gains: {title: 'Gains', make: gainsView},
  roofline: {title: 'Roofline', make: rooflineView},
  memory: {title: 'Memory', make: memoryView},
  precision: {title: 'Precision', make: precisionView},
  fusion: {title: 'Fusion', make: fusionView},
  nodes: {title: 'ONNX nodes', make: nodesView},
  build: {title: 'Build', make: buildView},
};

// The reader's choice goes before the system's. Storage may be barred, as for some local files.
function setTheme(theme) {
  document.documentElement.style.colorScheme = theme;
  try {
    localStorage.setItem('kiln-theme', theme);
  } catch { /* kept for this page alone */
  }
}

function isDark() {
  const own = document.documentElement.style.colorScheme;
  return own ? own === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

function masthead(engine) {
  const {build} = engine;
  const tags = [build.target, build.device, build.precision].filter(Boolean).map(
      (text) => el('span', {class: 'tag'}, text));
  return [
    el('span', {class: 'mark', 'aria-hidden': 'true'}),
    el('div', {class: 'title'}, el('h1', {}, build.model_name || 'a model'), tags,
       el('span', {class: 'tag ' + (build.verified ? 'good' : 'bad')},
          build.verified ? 'verified' : 'not verified')),
    engines.length > 1 &&
        el('span', {class: 'choices', role: 'group', 'aria-label': 'Engine'},
           engines.map(
               (one, i) => choice(
                   'AB'[i], i === state.engine,
                   () => change({engine: i, layer: -1, point: samePoint(one)}), one.file))),
    el('button', {
      type: 'button',
      class: 'choice',
      title: 'Light or dark',
      'aria-label': 'Light or dark',
      onclick: () => setTheme(isDark() ? 'light' : 'dark')
    },
       '◐'),
  ].filter(Boolean);
}

function samePoint(engine) {
  const name = engines[state.engine].points[state.point]?.name;
  return Math.max(0, engine.points.findIndex((point) => point.name === name));
}

function navigation(engine) {
  const chips = engine.points.length > 1 &&
      el('span', {class: 'choices', role: 'group', 'aria-label': 'Shape point'},
         engine.points.map(
             (point) => choice(
                 point.name, point.index === state.point, () => change({point: point.index}),
                 'batch ' + point.batch)));
  return [
    el('span', {class: 'tabs'},
       Object.entries(kViews).map(
           ([view, {title}]) =>
               el('a', {
                 href: addressOf({...state, view, layer: -1}),
                 'aria-current': view === state.view && 'page'
               },
                  title))),
    chips || ''
  ];
}

function showPanel(engine) {
  const panel = document.getElementById('panel'), layer = engine.layers[state.layer];
  panel.hidden = !layer;
  document.body.classList.toggle('with-panel', Boolean(layer));
  panel.replaceChildren(...(layer ? regionPanel(engine, layer) : []));
}

let drawn = '';  // the address without the region
function render() {
  const engine = engines[state.engine], point = engine.points[state.point];
  hideTip();
  document.title = (engine.build.model_name || 'engine') + ' · Kiln';
  document.getElementById('masthead').replaceChildren(...masthead(engine));
  document.getElementById('views').replaceChildren(...navigation(engine));
  const main = document.getElementById('main');
  main.replaceChildren(
      point ?
          kViews[state.view].make(engine, point) :
          section(
              'Nothing', null, el('p', {class: 'nothing'}, 'The report holds no shape point.')));
  showPanel(engine);
  drawn = addressOf({...state, layer: -1});
}

// What had the focus before something was drawn anew has it after.
function keepingFocus(draw) {
  const old = document.activeElement, named = (element) => element.ariaLabel || element.textContent;
  const place = old.closest('#masthead, #views, #main, #panel'), name = named(old);
  draw();
  if (!place || document.contains(old)) return;
  [...place.querySelectorAll(old.tagName)].find((element) => named(element) === name)?.focus({
    preventScroll: true
  });
}

// Opening a region leaves the view beside it as it is.
function follow() {
  readAddress(Object.keys(kViews), engines);
  if (addressOf({...state, layer: -1}) !== drawn)
    keepingFocus(render);
  else
    keepingFocus(() => showPanel(engines[state.engine]));
}

function closePanel() {
  if (state.layer < 0) return;
  change({layer: -1});
  document.querySelector('#main .grid, #main button, #main svg')?.focus();
}

addEventListener('hashchange', follow);
addEventListener('keydown', (event) => {
  if (event.key === 'Escape') closePanel();
  if (event.key === '/' && !(event.target instanceof HTMLInputElement)) {
    document.querySelector('input[type=search]')?.focus();
    event.preventDefault();
  }
});
try {
  const theme = localStorage.getItem('kiln-theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.style.colorScheme = theme;
} catch { /* the system's choice */
}
follow();
document.documentElement.dataset.ready = performance.now().toFixed(0);
