-- SPDX-License-Identifier: Apache-2.0
-- script.lua: the page's script. Without it the page says the same; with it the timeline zooms and tells what an action is, and tables
-- sort.
-- luacheck: no max line length

return [==[
(() => {
  const $ = i => document.getElementById(i), NS = 'http://www.w3.org/2000/svg';
  for (const T of document.querySelectorAll('table.sort')) {
    const hs = [...T.tHead.rows[0].cells];
    hs.forEach((h, c) => h.firstChild.addEventListener('click', () => {
      const up = h.getAttribute('aria-sort') === 'ascending' ? -1 : 1, v = r => r.cells[c].dataset.v ?? r.cells[c].textContent;
      hs.forEach(q => q.removeAttribute('aria-sort')); h.setAttribute('aria-sort', up > 0 ? 'ascending' : 'descending');
      T.tBodies[0].append(...[...T.tBodies[0].rows].sort((a, b) => { const x = v(a), y = v(b); return up * (x === '' || y === '' || isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y); }));
    }));
  }
  if (!$('d')) return;
  const D = JSON.parse($('d').textContent), plot = $('plot'), ov = $('ov');
  const WORD = {F: 'forward', B: 'backward', I: 'backward for input', W: 'backward for weights', P: 'F&B'};
  const rows = D.R.map(({t, a}) => { let s = 0; const l = []; for (let i = 0; i < a.length;) { s += a[i++]; const [k, st, st2, d, o, o2] = t[a[i++]], mb = a[i++];
    l.push({k, st, st2, o, o2, s: s * D.u, e: (s + d) * D.u, mb, mb2: k === 'P' ? a[i++] : -1}); } return l; });
  let t0 = 0, t1 = D.W, at = null;
  const el = (n, at, txt) => { const x = document.createElementNS(NS, n); for (const k in at) x.setAttribute(k, at[k]); if (txt != null) x.textContent = txt; return x; };
  const x = t => (t - t0) / (t1 - t0) * 100 + '%', cut = t => D.c.some(c => t >= c[0] && t < c[1]);
  function draw() {
    $('tl').classList.toggle('z', t1 - t0 < D.W * .6); $('tl').setAttribute('viewBox', `${t0 / D.W * D.N} 0 ${(t1 - t0) / D.W * D.N} ${D.p * D.H}`);
    const px = plot.clientWidth / (t1 - t0), n = Math.max(4, plot.clientWidth / 80), w = (t1 - t0) * D.f; let st = 10 ** Math.floor(Math.log10(w / n));
    st *= [1, 2, 5, 10].find(m => w / (st * m) <= n);
    const ax = []; for (let v = Math.ceil(t0 * D.f / st - 1e-9) * st; v <= t1 * D.f - st / 4; v += st) ax.push(el('text', {x: x(v / D.f), y: 14}, +v.toPrecision(6)));
    $('ax').replaceChildren(...ax); const o = [], h = D.H - 4;
    if (D.H > 15) rows.forEach((r, i) => { for (const a of r) { if (a.e < t0 || a.s > t1 || (a.e - a.s) * px < 15) continue;
      const y = i * D.H + 2, m = x((a.s + a.e) / 2), put = (k, v, yy, q) => o.push(el('text', {x: m, y: yy, class: q ? 'it' : '', style: `fill:var(--on${k})`}, v));
      if (a.k === 'P') { if (h > 16) { put('F', a.mb, y + 8, a.o); put('B', a.mb2, y + 17, a.o2); } } else if (a.k !== 'W' || h > 16) put(a.k, a.mb, y + h * (a.k === 'W' ? .96 : a.k === 'I' ? .84 : .67), a.o); } });
    if (at) { const a = rows[at.r][at.i]; o.push(el('rect', {x: x(a.s), y: at.r * D.H + 1, width: (a.e - a.s) / (t1 - t0) * 100 + '%', height: D.H - 2})); }
    ov.replaceChildren(...o);
  }
  const q = t => { for (const [f, u] of [[1, 's'], [1e3, 'ms'], [1e6, 'µs'], [1e9, 'ns']]) if (t * f >= 1) return +(t * f).toPrecision(3) + ' ' + u; return '0 s'; };
  const s = t => +(t * D.f).toPrecision(5) + ' ' + D.n, rank = r => D.R[r].r;
  const mb = (n, o) => `microbatch ${n}${o ? ' (from the last rank)' : ''}`;
  function tell(r, i, t) {
    if (!rows[r].length) return; at = {r, i}; const a = rows[r][i], b = rows[r][i - 1];
    if (t !== undefined && (t < a.s || t > a.e)) { at = null; $('out').textContent = cut(t) ? `${s(t)} is in the overview: each column shows what takes most of it.` : `Rank ${rank(r)} is idle at ${s(t)}.`; }
    else $('out').textContent = `Rank ${rank(r)} · ` + (a.k === 'P' ? `F&B: forward of ${mb(a.mb, a.o)} on stage ${a.st}, backward of ${mb(a.mb2, a.o2)} on stage ${a.st2}` : `${a.k}: ${WORD[a.k]} of ${mb(a.mb, a.o)} on stage ${a.st}`) + ` · ${s(a.s)} to ${s(a.e)}, ${q(a.e - a.s)}` + (b && a.s - b.e > 2 * D.u && t === undefined && !cut(b.e) ? ` · idle before: ${q(a.s - b.e)}` : '');
    draw();
  }
  const near = (r, t) => { const i = rows[r].findIndex(a => a.e >= t); return i < 0 ? rows[r].length - 1 : i; };
  const point = ev => { const b = plot.getBoundingClientRect(), r = Math.min(D.p - 1, Math.max(0, Math.floor((ev.clientY - b.top) / b.height * D.p))), t = t0 + (ev.clientX - b.left) / b.width * (t1 - t0); tell(r, near(r, t), t); };
  plot.addEventListener('pointermove', point); plot.addEventListener('pointerdown', point);
  const zoom = document.querySelectorAll('.zoom button');
  function view(a, b) { const w = Math.min(D.W, Math.max(D.W / 400, b - a)); t0 = Math.min(Math.max(0, a), D.W - w); t1 = t0 + w; $('ph').style.visibility = w < D.W ? 'hidden' : ''; draw();
    for (const z of zoom) z.setAttribute('aria-pressed', Math.abs(z.dataset.a - t0) + Math.abs(z.dataset.b - t1) < .001 * D.W); }
  for (const z of zoom) z.addEventListener('click', () => { at = null; view(+z.dataset.a, +z.dataset.b); });
  plot.addEventListener('keydown', ev => {
    let {r, i} = at || {r: 0, i: Math.max(0, rows[0].findIndex(a => a.s >= t0))}; const k = ev.key, m = at ? rows[r][i].s : (t0 + t1) / 2, w = t1 - t0;
    if (k === 'ArrowRight') i = at ? Math.min(rows[r].length - 1, i + 1) : i; else if (k === 'ArrowLeft') i = Math.max(0, i - 1);
    else if (k === 'ArrowDown' || k === 'ArrowUp') { const n = Math.min(D.p - 1, Math.max(0, r + (k === 'ArrowDown' ? 1 : -1))); i = near(n, rows[r][i].s + D.u); r = n; }
    else if (k === '+' || k === '=') { view(m - w / 4, m + w / 4); return ev.preventDefault(); } else if (k === '-') { view(m - w, m + w); return ev.preventDefault(); } else return;
    ev.preventDefault(); tell(r, i); const a = rows[r][i]; if (a && (a.s < t0 || a.e > t1)) view(a.s - w / 2, a.s + w / 2);
  });
  addEventListener('resize', draw); addEventListener('beforeprint', () => { at = null; view(0, D.W); });
})();
]==]
