// What would gain most at a point: for everything that could be better, the time that it costs at
// most. Estimates, to choose what to look at next; they overlap.

// A value that passes through memory between two regions is written once and read once.
function missCost(point, miss, ceilings) {
  const named = (name) =>
      point.regions.find((region) => region.name === name || region.origins.includes(name));
  const producer = named(miss.producer), consumer = named(miss.consumer);
  if (!producer || !consumer || producer === consumer || !(ceilings.bytesPerSecond > 0)) {
    return {producer, consumer, bytes: NaN, us: NaN};
  }
  const bytes = Math.min(producer.bytes_written, consumer.bytes_read);
  return {
    producer,
    consumer,
    bytes,
    us: Math.min(
        2 * bytes / ceilings.bytesPerSecond * 1e6 + ceilings.floorUs, producer.us + consumer.us)
  };
}

function regionGains(region) {
  const gains = [], add = (us, kind, what) => us > 0 && gains.push({us, kind, what, region});
  if (!region.winner) return gains;
  add(region.us - region.idealUs, 'roofline',
      percentText(region.roof) + ' of the ' + (region.bound === 'compute' ? 'compute' : 'memory') +
          ' ceiling' + (region.bound === 'overhead' ? '; short, so mostly its start' : ''));
  for (const candidate of region.candidates) {
    if (candidate.verdict === 'wrong' && candidate.median_us > 0) {
      add(region.us - candidate.median_us, 'wrong result',
          candidate.provider + ' ' + candidate.key + ' was faster: ' + candidate.reason);
    }
  }
  if (region.host_reason) add(region.us, 'on the host', region.host_reason);
  const wide = {f32: 4, tf32: 4, f16: 2, bf16: 2};
  const wanted = wide[region.precision_asked], got = wide[region.precision_realised];
  if (wanted < got)
    add(region.us * (1 - wanted / got), 'precision',
        'kept in ' + region.precision_realised + ': ' + region.precision_reason);
  return gains;
}

function gainsAt(engine, point) {
  const gains = point.regions.flatMap(regionGains);
  for (const miss of point.near_misses) {
    const {us, bytes, producer} = missCost(point, miss, engine.ceilings);
    if (us > 0) {
      gains.push({
        us,
        kind: 'fusion',
        region: producer,
        what: bytesText(bytes) + ' through memory to ' + miss.consumer + ': ' + miss.reason
      });
    }
  }
  return gains.sort((a, b) => b.us - a.us);
}

function gainColumns(point, most) {
  return [
    {
      title: 'Could gain',
      width: '96px',
      number: true,
      value: (gain) => gain.us,
      cell: (gain) => timeText(gain.us)
    },
    {
      title: 'Of the point',
      width: '104px',
      number: true,
      value: (gain) => gain.us,
      cell: (gain) =>
          el('span', {class: 'share', style: {'--share': gain.us / most}},
             percentText(gain.us / point.sum_us))
    },
    {
      title: 'From',
      width: '108px',
      value: (gain) => gain.kind,
      cell: (gain) => el('span', {class: 'tag'}, gain.kind)
    },
    {
      title: 'Why',
      width: 'minmax(220px, 1fr)',
      value: (gain) => gain.what,
      cell: (gain) => nameCell(gain.what)
    },
    {
      title: 'Region',
      width: 'minmax(220px, 1fr)',
      value: (gain) => gain.region.name,
      cell: (gain) => nameCell(gain.region.name, shortName(gain.region.name))
    },
  ];
}

function gainsView(engine, point) {
  const gains = gainsAt(engine, point), most = gains[0]?.us || 1;
  return section(
      'What would gain most at ' + point.name,
      'The most that each could save if nothing else stood in its way; ' +
          'the lines overlap and do not add up. ' +
          (engine.ceilings.published ?
               'Ceilings are the device\'s ' + engine.ceilings.source + ' rates.' :
               'No peak rates are known of this device: the best rates of this report stand in.'),
      makeSearchedGrid({
        label: 'gains',
        columns: gainColumns(point, most),
        rows: gains,
        text: (gain) => (gain.kind + '\n' + gain.what).toLowerCase() + '\n' + gain.region.text,
        open: (gain) => openRegion(gain.region)
      }));
}
