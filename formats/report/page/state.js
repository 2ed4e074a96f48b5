// What is shown. It is kept in the address, so that a view can be linked to and gone back to.

const state = {
  view: 'overview',
  engine: 0,
  point: 0,
  layer: -1
};
// How the reader left each view: searched, sorted, scrolled.
const left = {
  query: '',
  metric: 'time',
  grids: {}
};

function addressOf({view, engine, point, layer}) {
  const parts = ['view=' + view];
  if (engine > 0) parts.push('engine=' + engine);
  if (point > 0) parts.push('point=' + point);
  if (layer >= 0) parts.push('region=' + layer);
  return '#' + parts.join('&');
}

function readAddress(views, engines) {
  const given = new URLSearchParams(location.hash.slice(1));
  const number = (name, least, end) => {
    const value = Number.parseInt(given.get(name) ?? '', 10);
    return value >= least && value < end ? value : least;
  };
  state.view = views.includes(given.get('view')) ? given.get('view') : views[0];
  state.engine = number('engine', 0, engines.length);
  state.point = number('point', 0, engines[state.engine].points.length);
  state.layer = number('region', -1, engines[state.engine].layers.length);
}

function change(patch) {
  location.hash = addressOf({...state, ...patch});  // heard by main.js
}
