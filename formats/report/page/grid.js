// A table of any length, of which only the rows in sight are in the document.
//
// columns: { title, width (CSS, its least in px), value(row): what it sorts by, cell(row): text or
// element,
//            number: true to align right, open(row): what Enter and a click do, hint }
// The arrow keys move a cursor over the cells.

const kRowHeight = 30, kSpareRows = 12;

function makeGrid({label, columns, rows, open, sort = null}) {
  const kept = (left.grids[label] ??= {sort, row: 0, column: 0, top: 0});
  const template = columns.map((column) => column.width).join(' ');
  // Every row is a grid of its own, so that columns must not depend on what is in them.
  const least =
      columns.reduce((sum, column) => sum + Number(/(\d+)px/.exec(column.width)[1]), 0) + 'px';
  const body = el('div', {class: 'rows', role: 'rowgroup', style: {'min-width': least}});
  const head = el('div', {
    class: 'row head',
    role: 'row',
    style: {'grid-template-columns': template, 'min-width': least}
  });
  const box =
      el('div', {
        class: 'grid',
        role: 'grid',
        tabindex: 0,
        'aria-label': label,
        onscroll: () => {
          kept.top = box.scrollTop;
          draw();
        },
        onkeydown: key
      },
         head, body);
  let shown = rows, order = [];

  function drawHead() {
    head.replaceChildren(...columns.map((column, index) => {
      const sorted =
          kept.sort?.column === index ? (kept.sort.down ? 'descending' : 'ascending') : 'none';
      const title = el('span', {}, column.title);
      return el(
          'div', {
            role: 'columnheader',
            class: column.number && 'number',
            title: column.hint,
            'aria-sort': column.value ? sorted : undefined
          },
          column.value ?
              el('button', {type: 'button', tabindex: -1, onclick: () => sortBy(index)}, title) :
              title);
    }));
  }

  // Descending, ascending, as the rows came.
  function sortBy(index) {
    const first = columns[index].number ?? false, now = kept.sort;
    kept.sort = now?.column !== index ? {column: index, down: first} :
        now.down === first            ? {column: index, down: !first} :
                                        null;
    arrange();
  }

  function arrange() {
    order = [...shown];
    if (kept.sort && columns[kept.sort.column]?.value) {
      const {column, down} = kept.sort, value = columns[column].value;
      const compare = (a, b) => {
        const x = value(a), y = value(b);
        if (typeof x === 'string') return x.localeCompare(y);
        return (Number.isNaN(x) ? -Infinity : x) - (Number.isNaN(y) ? -Infinity : y);
      };
      order.sort(down ? (a, b) => compare(b, a) : compare);
    }
    box.setAttribute('aria-rowcount', order.length + 1);
    body.style.height = order.length * kRowHeight + 'px';
    kept.row = Math.max(0, Math.min(kept.row, order.length - 1));
    drawHead();
    draw();
  }

  function drawRow(index) {
    const row = order[index];
    return el(
        'div', {
          class: 'row',
          role: 'row',
          'aria-rowindex': index + 2,
          style: {'grid-template-columns': template, top: index * kRowHeight + 'px'}
        },
        columns.map((column, at) => {
          const action = column.open ?? open;
          const here = index === kept.row && at === kept.column;
          return el(
              'div', {
                role: 'gridcell',
                id: here ? cursorId : undefined,
                class: [
                  column.number && 'number', action && 'opens', here && 'cursor', column.tone?.(row)
                ].filter(Boolean)
                           .join(' '),
                onclick: action && (() => {
                           [kept.row, kept.column] = [index, at];
                           action(row);
                         })
              },
              column.cell(row));
        }));
  }

  const cursorId = 'cursor-' + label.replace(/\W+/g, '-');
  function draw() {
    const height = box.clientHeight || 600;
    const first = Math.max(0, Math.floor(box.scrollTop / kRowHeight) - kSpareRows);
    const end =
        Math.min(order.length, Math.ceil((box.scrollTop + height) / kRowHeight) + kSpareRows);
    const drawn = [];
    for (let i = first; i < end; ++i) drawn.push(drawRow(i));
    body.replaceChildren(...drawn);
    if (order.length === 0) body.append(el('p', {class: 'nothing'}, 'Nothing to show.'));
    box.setAttribute('aria-activedescendant', cursorId);
  }

  function key(event) {
    const page = Math.max(1, Math.floor(box.clientHeight / kRowHeight) - 2);
    const moves = {
      ArrowDown: [1, 0],
      ArrowUp: [-1, 0],
      ArrowRight: [0, 1],
      ArrowLeft: [0, -1],
      PageDown: [page, 0],
      PageUp: [-page, 0],
      Home: [-order.length, 0],
      End: [order.length, 0]
    };
    if (event.key === 'Enter' && event.target === box && order.length > 0) {
      (columns[kept.column].open ?? open)?.(order[kept.row]);
    } else if (event.key === 's' && columns[kept.column].value) {
      sortBy(kept.column);
    } else if (moves[event.key]) {
      kept.row = Math.max(0, Math.min(order.length - 1, kept.row + moves[event.key][0]));
      kept.column = Math.max(0, Math.min(columns.length - 1, kept.column + moves[event.key][1]));
      const top = kept.row * kRowHeight, room = box.clientHeight - head.offsetHeight - kRowHeight;
      if (box.scrollTop > top) box.scrollTop = top;
      if (box.scrollTop < top - room) box.scrollTop = top - room;
      draw();
    } else {
      return;
    }
    event.preventDefault();
  }

  arrange();
  requestAnimationFrame(() => {
    box.scrollTop = kept.top;
    draw();
  });
  return {
    box,
    show: (filtered) => {
      shown = filtered;
      box.scrollTop = 0;
      arrange();
    }
  };
}

// A grid under a search field; `text(row)` is what is searched.
function makeSearchedGrid({text, tools = [], ...options}) {
  const count = el('span', {class: 'count', 'aria-live': 'polite'});
  const grid = makeGrid(options);
  const input = el('input', {
    type: 'search',
    placeholder: 'Search names, nodes, tactics',
    value: left.query,
    'aria-label': 'Search',
    oninput: () => {
      left.query = input.value;
      search();
    }
  });
  function search() {
    const query = left.query.trim();
    const found = query ? options.rows.filter((row) => matches(text(row), query)) : options.rows;
    count.textContent = found.length === options.rows.length ?
        String(found.length) :
        found.length + ' of ' + options.rows.length;
    grid.show(found);
  }
  search();
  return el('div', {}, el('div', {class: 'tools'}, input, count, tools), grid.box);
}
