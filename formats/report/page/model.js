// The report with what every view wants to know of a region.

function readReports() {
  return JSON.parse(document.getElementById('reports').textContent)
      .map(({file, report}) => ({file, ...digest(report)}));
}

function digest(report) {
  const points = report.points.map((point, index) => {
    const digested = {...point, index, regions: point.regions.map(digestRegion)};
    digested.buffers = point.memory.buffers.filter((buffer) => buffer.bytes > 0)
                           .map((buffer) => withinSteps(buffer, point.regions.length))
                           .filter((buffer) => buffer.first_step <= buffer.last_step);
    digested.total = point.graph_us > 0 ? point.graph_us : point.sum_us;
    return digested;
  });
  const result = {
    build: report.build,
    notes: report.notes,
    stages: report.stages,
    weightsBytes: report.weights_bytes,
    points,
    layers: makeLayers(points)
  };
  result.ceilings = makeCeilings(result);
  for (const point of points)
    for (const region of point.regions) place(region, result.ceilings);
  return result;
}

// A step is a region's number; a damaged report may name others.
function withinSteps(buffer, steps) {
  return {
    ...buffer,
    first_step: Math.max(0, buffer.first_step),
    last_step: Math.min(buffer.last_step, steps - 1)
  };
}

function perSecond(amount, us) {
  const rate = us > 0 ? amount / us * 1e6 : 0;
  return Number.isFinite(rate) ? rate : 0;
}

function digestRegion(region, index) {
  const chosen = region.candidates[region.chosen] ?? null;
  const us = chosen ? chosen.median_us ?? NaN : 0;
  const bytes = region.bytes_read + region.bytes_written;
  return {
    ...region,
    index,
    winner: chosen,
    us,
    bytes,
    tactic: chosen ? (chosen.provider + ' ' + chosen.key).trim() : 'needs no kernel',
    bytesPerSecond: perSecond(bytes, us),
    flopsPerSecond: perSecond(region.flops, us),
    get text() {
      return searchText(this);
    }
  };
}

// What a search looks at; made when asked for, since there is much of it.
function searchText({name, origins, kind, rule, precision_realised: precision, tactic}) {
  return [name, ...origins, kind, rule, precision, tactic].join('\n').toLowerCase();
}

// Rows of the matrix: regions of the same name, which are the same work at several points, in an
// order that every point agrees with where one exists.
function makeLayers(points) {
  const layers = [], byKey = new Map();
  for (const point of points) {
    const seen = new Map();
    let fresh = [], before = null;
    const flush = () => {
      if (fresh.length === 0) return;
      layers.splice(before === null ? 0 : layers.indexOf(before) + 1, 0, ...fresh);
      fresh = [];
    };
    for (const region of point.regions) {
      const repeat = seen.get(region.name) ?? 0;
      seen.set(region.name, repeat + 1);
      const key = region.name + '\n' + repeat;
      let layer = byKey.get(key);
      if (layer === undefined) {
        layer = {
          name: region.name,
          kind: region.kind,
          cells: points.map(() => null),
          get text() {
            return this.cells.map((cell) => cell?.text ?? '').join('\n');
          }
        };
        byKey.set(key, layer);
        fresh.push(layer);
      } else {
        flush();
        before = layer;
      }
      layer.cells[point.index] = region;
      region.layer = layer;
    }
    flush();
  }
  layers.forEach((layer, index) => layer.index = index);
  return layers;
}

// Every word of the query is somewhere in the text.
function matches(text, query) {
  return query.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}
