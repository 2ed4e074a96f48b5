// Elements. Whatever comes out of a report becomes text or an attribute, never markup: names in a
// model are untrusted.

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on'))
      element.addEventListener(name.slice(2), value);
    else if (name === 'style')
      for (const [key, v] of Object.entries(value)) element.style.setProperty(key, v);
    else
      element.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

function el(tag, properties, ...children) {
  return fill(document.createElement(tag), properties, children);
}

function svg(tag, attributes, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

// A name that may be long, shortened where it is one; whole when pointed at.
function nameCell(name, shown = name) {
  return el('span', {class: 'name', title: name}, shown);
}

// A button of a group in which one is pressed.
function choice(label, pressed, onclick, title) {
  return el(
      'button', {type: 'button', class: 'choice', 'aria-pressed': String(pressed), onclick, title},
      label);
}

function section(title, explanation, ...content) {
  return el(
      'section', {class: 'card'}, el('h2', {}, title),
      explanation && el('p', {class: 'explain'}, explanation), ...content);
}
