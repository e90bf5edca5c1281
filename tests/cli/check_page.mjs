// SPDX-License-Identifier: Apache-2.0
// node --experimental-websocket check_page.mjs PAGE.html … [--shots FOLDER]: opens pages in a headless Chromium, speaking its DevTools protocol,
// and prints what is wrong with each, a line a finding; nothing: all is well. Checked: no console message, nothing wider than the screen at
// 360, 768 and 1280 px, text contrast AA in light and dark, the keyboard on the timeline, sorting, no growth under the pointer, one sheet of
// A4 in print, and all of it without script. With --shots also screenshots.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';

const args = process.argv.slice(2), at = args.indexOf('--shots'), shots = at >= 0 ? args.splice(at, 2)[1] : null;
const home = mkdtempSync(join(tmpdir(), 'page-'));
const browser = spawn(process.env.CHROMIUM || 'chromium', ['--headless=new', '--no-sandbox', '--disable-gpu', '--hide-scrollbars',
  '--disable-dev-shm-usage', '--remote-debugging-port=0', '--user-data-dir=' + home, 'about:blank'], { stdio: ['ignore', 'ignore', 'pipe'] });
const end = status => { browser.kill(); try { rmSync(home, { recursive: true, force: true, maxRetries: 5 }); } catch { /* it is a temporary folder */ } process.exit(status); };
setTimeout(() => { console.log('the browser does not answer'); end(3); }, 240000).unref();
const address = await new Promise(done => { let text = ''; browser.stderr.on('data', part => { text += part; const found = text.match(/ws:\/\/([^/]+)\//); if (found) done(found[1]); }); });
const get = path => new Promise(done => http.get(`http://${address}${path}`, answer => { let text = ''; answer.on('data', part => text += part).on('end', () => done(JSON.parse(text))); }));
let list;
do { list = await get('/json'); } while (!list.some(target => target.type === 'page'));
const socket = new WebSocket(list.find(target => target.type === 'page').webSocketDebuggerUrl);
await new Promise(done => socket.onopen = done);
let id = 0, console_messages = [];
const waiting = {};
let loaded = null;
socket.onmessage = message => {
  const read = JSON.parse(message.data);
  if (read.id) waiting[read.id](read);
  else if (read.method === 'Page.loadEventFired') loaded?.();
  else if (/exceptionThrown|consoleAPICalled|Log.entryAdded/.test(read.method)) console_messages.push(JSON.stringify(read.params).slice(0, 300));
};
const send = (method, params = {}) => new Promise(done => { waiting[++id] = read => done(read.result ?? read); socket.send(JSON.stringify({ id, method, params })); });
const js = async text => { const read = await send('Runtime.evaluate', { expression: text, returnByValue: true, awaitPromise: true }); return read.result?.value ?? read.exceptionDetails?.exception?.description; };
for (const domain of ['Page', 'Runtime', 'Log']) await send(domain + '.enable');

const frames = 'new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))';
async function open(file, width, dark, scripts = true) {
  await send('Emulation.setDeviceMetricsOverride', { width, height: 900, deviceScaleFactor: width < 500 ? 2 : 1, mobile: width < 500 });
  await send('Emulation.setEmulatedMedia', { media: '', features: [{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }] });
  const ready = new Promise(done => loaded = done);
  await send('Page.navigate', { url: 'file://' + file });
  await ready;
  if (scripts) await js(frames);   // without, no frame calls back
}
async function shot(name, clip) {
  if (!shots) return;
  const size = clip ?? { x: 0, y: 0, width: await js('innerWidth'), height: await js('document.documentElement.scrollHeight') };
  const read = await send('Page.captureScreenshot', { captureBeyondViewport: true, clip: { ...size, scale: 1 } });
  writeFileSync(join(shots, name + '.png'), Buffer.from(read.data, 'base64'));
}

const wide = width => `(() => { const inside = e => e.closest('svg') && e.tagName !== 'svg';
  const out = [...document.querySelectorAll('body *')].filter(e => !inside(e) && e.getBoundingClientRect().width > 0 && e.getBoundingClientRect().right > ${width} + 1);
  return document.documentElement.scrollWidth > ${width} || out.length ? 'scrolls to ' + document.documentElement.scrollWidth + ': ' + out.slice(0, 4).map(e => e.tagName + '.' + (e.className.baseVal ?? e.className) + ' in ' + (e.closest('section')?.id || 'no section')).join(', ') : ''; })()`;
// Text over text or beyond its drawing, in charts.
const charts = `(() => { const bad = [];
  for (const svg of document.querySelectorAll('svg:not(#ov):not(.sw):not(.ik)')) { const own = svg.getBoundingClientRect();
    const boxes = [...svg.querySelectorAll('text')].filter(t => t.textContent && t.closest('svg') === svg && getComputedStyle(t).display !== 'none').map(t => [t.textContent, t.getBoundingClientRect()]);
    boxes.forEach(([words, a], i) => { if (a.left < own.left - 2 || a.right > own.right + 2) bad.push(words + ' leaves its drawing');
      for (const [others, b] of boxes.slice(i + 1)) if (a.left < b.right - 2 && b.left < a.right - 2 && a.top < b.bottom - 3 && b.top < a.bottom - 3) bad.push(words + ' covers ' + others); }); }
  return bad.slice(0, 4).join('; '); })()`;
const contrast = `(() => { const L = c => { const [r, g, b] = c.map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; },
  P = s => (s.match(/[\\d.]+/g) || []).map(Number), bg = e => { for (; e; e = e.parentElement) { const c = P(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
  const low = new Set; for (const e of document.querySelectorAll('body *')) { if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) || /SCRIPT|STYLE|TITLE/i.test(e.tagName)) continue;
    const s = getComputedStyle(e), f = P(e.closest('svg') ? s.fill : s.color).slice(0, 3), a = L(f), b = L(bg(e)), k = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (k < 4.5) low.add(e.tagName + '.' + (e.className.baseVal ?? e.className) + ' ' + k.toFixed(2)); } return [...low].join('; '); })()`;
const keys = `(() => { const plot = document.getElementById('plot'); if (!plot) return ''; const before = document.documentElement.scrollHeight, out = document.getElementById('out');
  const press = key => plot.dispatchEvent(new KeyboardEvent('keydown', { key, cancelable: true })); plot.focus();
  press('ArrowRight'); const first = out.textContent; press('ArrowRight'); const second = out.textContent; press('ArrowDown'); const third = out.textContent;
  const view = () => document.getElementById('tl').getAttribute('viewBox'), whole = view(); press('+'); const near = view(); press('-'); press('-'); press('-');
  const zoom = [...document.querySelectorAll('.zoom button')].slice(1).map(b => { b.click(); return view(); });
  document.querySelector('.zoom button')?.click();
  const many = document.querySelectorAll('.lab span').length > 1;
  return [/^Rank \\d+ · /.test(first) ? '' : 'no words for an action: ' + first, first !== second ? '' : 'the right arrow goes nowhere', !many || /^Rank [1-9]/.test(third) || document.querySelectorAll('#timeline .lab span').length < 4 ? '' : 'the down arrow goes nowhere: ' + third,
    near !== whole ? '' : 'plus does not zoom', zoom.includes(whole) ? 'a button does not zoom' : '', document.activeElement === plot ? '' : 'the timeline takes no focus',
    document.documentElement.scrollHeight > before ? 'the page grows by ' + (document.documentElement.scrollHeight - before) : '', view() === whole ? '' : 'no way back to the whole'].filter(Boolean).join('; '); })()`;
const sorts = `(() => { const table = document.querySelector('table.sort'); if (!table) return ''; const heads = [...table.tHead.rows[0].cells], last = heads.findIndex(h => /peak/.test(h.textContent)); if (last < 0) return '';
  const values = () => [...table.tBodies[0].rows].map(r => Number(r.cells[last].dataset.v)).filter(v => !isNaN(v)); heads[last].firstChild.click(); const up = values(); heads[last].firstChild.click(); const down = values();
  return up.every((v, i) => !i || up[i - 1] <= v) && down.every((v, i) => !i || down[i - 1] >= v) && heads[last].getAttribute('aria-sort') === 'descending' ? '' : 'the table does not sort'; })()`;
// What a screen reader needs: a language, one heading of the first level, named pictures, headed columns, names for what can be pressed.
const named = `(() => [document.documentElement.lang ? '' : 'no language', document.querySelectorAll('h1').length === 1 ? '' : 'not one h1', document.querySelector('main') ? '' : 'no main',
  [...document.querySelectorAll('svg:not([aria-hidden])')].every(s => s.closest('[role=img]') || s.closest('[aria-hidden]') || s.closest('figcaption')) ? '' : 'a drawing without a name',
  [...document.querySelectorAll('th')].every(t => t.scope) ? '' : 'a heading of a table without scope', [...document.querySelectorAll('button')].every(b => b.textContent.trim()) ? '' : 'a button without a name',
  new Set([...document.querySelectorAll('[id]')].map(e => e.id)).size === document.querySelectorAll('[id]').length ? '' : 'an id twice'].filter(Boolean).join('; '))()`;

let wrong = 0;
for (const name of args) {
  const file = resolve(name), short = basename(name, '.html');
  const find = (where, what) => { if (what) { wrong++; console.log(`${short}, ${where}: ${what}`); } };
  console_messages = [];
  for (const [width, dark] of [[360, false], [768, false], [1280, false], [1280, true], [360, true]]) {
    await open(file, width, dark);
    find(`${width} px`, await js(wide(width)));
    find(`${width} px, charts`, await js(charts));
    if (width === 1280) find(dark ? 'contrast, dark' : 'contrast, light', await js(contrast));
    await shot(`${short}-${width}${dark ? '-dark' : ''}`);
  }
  await open(file, 1280, false);
  find('names', await js(named));
  find('keyboard', await js(keys));
  find('sorting', await js(sorts));
  if (shots) for (const i of [1, 2, 3]) {
    const box = await js(`(() => { const b = document.querySelectorAll('.zoom button')[${i}]; if (!b) return null; b.click(); const r = document.getElementById('timeline').getBoundingClientRect(); return { x: 0, y: r.top + scrollY, width: 1280, height: r.height }; })()`);
    if (box) await shot(`${short}-zoom${i}`, box);
  }
  await open(file, 1280, true);   // from a dark screen
  const sheet = await send('Page.printToPDF', { preferCSSPageSize: true, printBackground: true });
  const pdf = Buffer.from(sheet.data, 'base64'), pages = (pdf.toString('latin1').match(/\/Type\s*\/Page\b(?!s)/g) || []).length;
  if (shots) writeFileSync(join(shots, short + '.pdf'), pdf);
  if (pages !== 1) find('print', `${pages} pages`);
  await send('Emulation.setDeviceMetricsOverride', { width: 710, height: 1000, deviceScaleFactor: 1, mobile: false });
  await send('Emulation.setEmulatedMedia', { media: 'print' });
  find('print', await js(wide(710)));
  await shot(`${short}-print`);
  if (shots) console.log(`${short}: ${Math.round(await js('document.body.getBoundingClientRect().height') / 96 * 25.4)} of 281 mm in print, ${pages} page(s)`);
  await send('Emulation.setEmulatedMedia', { media: '' });
  await send('Emulation.setScriptExecutionDisabled', { value: true });
  await open(file, 360, false, false);
  find('without script, 360 px', await js(wide(360)));
  find('without script', await js(`[...document.querySelectorAll('.zoom,.js')].some(e => e.getBoundingClientRect().height > 0) ? 'shows what needs it' : ''`));
  await send('Emulation.setScriptExecutionDisabled', { value: false });
  find('console', console_messages.join(' '));
}
end(wrong ? 1 : 0);
