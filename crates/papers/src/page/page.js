'use strict';
(function () {
  const byId = (id) => document.getElementById(id);
  const tip = byId('tip');
  const told = byId('told');

  // Light or dark: what the system says until somebody chooses.
  const root = document.documentElement;
  const theme = byId('theme');
  const system = matchMedia('(prefers-color-scheme: dark)');
  const remembered = () => { try { return localStorage.getItem('bellwire-theme'); } catch (refused) { return null; } };
  const isDark = () => (root.dataset.theme ? root.dataset.theme === 'dark' : system.matches);
  const label = () => { theme.textContent = isDark() ? 'Light' : 'Dark'; };
  if (remembered()) root.dataset.theme = remembered();
  theme.hidden = false;
  theme.addEventListener('click', () => {
    root.dataset.theme = isDark() ? 'light' : 'dark';
    try { localStorage.setItem('bellwire-theme', root.dataset.theme); } catch (refused) { /* it holds until the page is left */ }
    label();
  });
  system.addEventListener('change', label);
  label();

  // Pointing at a point, by mouse, finger or keys. Its title would come up a second time, so it moves.
  for (const point of document.querySelectorAll('.point')) {
    const title = point.querySelector('title');
    point.dataset.says = title.textContent;
    title.remove();
  }
  let current = null;
  const leave = () => {
    if (current) current.classList.remove('at');
    current = null;
    tip.hidden = true;
  };
  const beside = () => {
    if (!current) return;
    const box = current.getBoundingClientRect();
    const size = tip.getBoundingClientRect();
    const left = Math.max(4, Math.min(box.left + box.width / 2 - size.width / 2, innerWidth - size.width - 4));
    const above = box.top - size.height - 6;
    tip.style.left = left + 'px';
    tip.style.top = (above > 50 ? above : box.bottom + 6) + 'px';
  };
  const visit = (point, aloud) => {
    if (current === point) return;
    leave();
    current = point;
    point.classList.add('at');
    tip.textContent = point.dataset.says;
    tip.hidden = false;
    beside();
    if (aloud) told.textContent = point.dataset.says;
  };
  const visible = (chart, within) => Array.from((within || chart).querySelectorAll('.point'))
    .filter((point) => !point.closest('.gone'));
  const step = (chart, key) => {
    const inside = current ? current.closest('svg') === chart : false;
    const groups = Array.from(chart.querySelectorAll('.series:not(.gone)'));
    const all = visible(chart);
    if (all.length === 0) return null;
    if (!inside) return key === 'End' ? all[all.length - 1] : all[0];
    const series = current.closest('.series');
    const row = visible(chart, series);
    const at = row.indexOf(current);
    const clamp = (index, list) => list[Math.max(0, Math.min(list.length - 1, index))];
    if (key === 'Home') return row[0];
    if (key === 'End') return row[row.length - 1];
    const back = key === 'ArrowLeft' || key === 'ArrowUp';
    if (!series || key === 'ArrowLeft' || key === 'ArrowRight') return clamp(at + (back ? -1 : 1), row);
    const next = groups[(groups.indexOf(series) + (back ? groups.length - 1 : 1)) % groups.length];
    return clamp(at, visible(chart, next)) || current;
  };
  for (const chart of document.querySelectorAll('figure > svg.chart')) {
    const pointed = (event) => {
      const point = event.target.closest('.point');
      if (point) visit(point, false); else leave();
    };
    chart.addEventListener('pointermove', pointed);
    chart.addEventListener('pointerdown', pointed);
    chart.addEventListener('pointerleave', leave);
    chart.addEventListener('blur', leave);
    chart.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') { leave(); return; }
      if (!['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown', 'Home', 'End'].includes(event.key)) return;
      event.preventDefault();
      const point = step(chart, event.key);
      if (point) {
        point.scrollIntoView({ block: 'nearest' });
        visit(point, true);
      }
    });
  }
  addEventListener('scroll', beside, { passive: true });

  // Taking curves away and putting them back.
  for (const key of document.querySelectorAll('.key')) {
    key.addEventListener('click', () => {
      const shown = key.getAttribute('aria-pressed') !== 'true';
      key.setAttribute('aria-pressed', String(shown));
      const series = key.closest('figure').querySelector('.series[data-series="' + key.dataset.series + '"]');
      if (series) series.classList.toggle('gone', !shown);
    });
  }

  // On paper, numbers cannot be opened.
  let opened = [];
  addEventListener('beforeprint', () => {
    opened = Array.from(document.querySelectorAll('details:not([open])'));
    for (const details of opened) details.open = true;
  });
  addEventListener('afterprint', () => {
    for (const details of opened) details.open = false;
  });

  // Looking for rows, on a page that has them.
  const search = byId('search');
  if (!search) return;
  const words = byId('words');
  const state = byId('state');
  const rows = Array.from(document.querySelectorAll('.board tbody tr'));
  const narrow = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const inState = state ? state.value : '';
    let count = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const fits = (!inState || row.dataset.state === inState) && wanted.every((word) => text.includes(word));
      row.classList.toggle('gone', !fits);
      count += fits ? 1 : 0;
    }
    byId('found').textContent = count + ' of ' + rows.length + ' rows';
  };
  search.hidden = false;
  search.addEventListener('submit', (event) => event.preventDefault());
  words.addEventListener('input', narrow);
  if (state) state.addEventListener('change', narrow);
  narrow();
  // A link to a row that the search has taken away brings all rows back.
  addEventListener('hashchange', () => {
    const row = byId(location.hash.slice(1));
    if (row ? row.classList.contains('gone') : false) {
      words.value = '';
      if (state) state.value = '';
      narrow();
      row.scrollIntoView();
    }
  });
}());
