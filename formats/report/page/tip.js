// The note beside the mark that the pointer or the cursor is on.

function showTip(content, x, y) {
  const tip = document.getElementById('tip');
  tip.replaceChildren(...content);
  tip.hidden = false;
  const {width, height} = tip.getBoundingClientRect();
  tip.style.left = Math.max(8, Math.min(x + 14, innerWidth - width - 8)) + 'px';
  tip.style.top = (y + 18 + height > innerHeight ? Math.max(8, y - height - 12) : y + 18) + 'px';
}

function hideTip() {
  document.getElementById('tip').hidden = true;
}

function regionTip(region) {
  return [
    el('b', {}, region.name),
    el('span', {}, timeText(region.us) + ', ' + percentText(region.time_share) + ' of the point'),
    el('span', {}, region.tactic)
  ];
}

// Makes a drawing's marks pickable: with the pointer, and with the arrow keys in the order given.
// marks: { shape, tip(): elements, open() }
function makePickable(drawing, marks) {
  let at = -1;
  const pick = (index, x, y) => {
    marks[at]?.shape.classList.remove('picked');
    at = index;
    if (at < 0) return hideTip();
    marks[at].shape.classList.add('picked');
    const box = marks[at].shape.getBoundingClientRect();
    showTip(marks[at].tip(), x ?? box.right, y ?? box.top);
  };
  const index = new Map(marks.map((mark, i) => [mark.shape, i]));
  drawing.addEventListener(
      'pointermove', (event) => pick(index.get(event.target) ?? -1, event.clientX, event.clientY));
  drawing.addEventListener('pointerleave', () => pick(-1));
  drawing.addEventListener('blur', () => pick(-1));
  drawing.addEventListener('click', (event) => marks[index.get(event.target)]?.open?.());
  drawing.setAttribute('tabindex', 0);
  drawing.addEventListener('keydown', (event) => {
    const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    if (step && marks.length > 0)
      pick((at + step + marks.length) % marks.length);
    else if (event.key === 'Enter')
      marks[at]?.open?.();
    else
      return;
    event.preventDefault();
  });
}
