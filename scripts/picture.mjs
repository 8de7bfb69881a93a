/**
 * `node scripts/picture.mjs`: takes docs/images/board.svg from a real run of `giro demo` in tmux. With `--convert` it only
 * turns a screen on stdin, as `tmux capture-pane -e -p` gives it, into SVG on stdout. Uses nothing that is not in Node.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const columns = 100;
const rows = 26;
const longestMs = 120_000;

/** Whose log is shown. */
const selected = '06-rename-total';

/** Words of a row; the more of them a screen has, the more it shows. */
const words = ['done', 'judging', 'working', 'integrating', 'verifying', 'retrying', 'waiting'];

/** Codes that set colours; and a line cut into those, other codes, signs that nobody sees, and characters. */
/* eslint-disable no-control-regex */
const colours = /\u001b\[[\d;]*m/g;
const tokens = /\u001b\[([\d;]*)m|\u001b[^m]*m?|[\p{Cc}\p{Cf}]|./gu;
/* eslint-enable no-control-regex */

const cell = { width: 8.4, height: 18, font: 14 };
const margin = { x: 16, top: 44, bottom: 14 };

/** The sixteen colours, and those of a cell that names none; read on a light page as well as on a dark one. */
const ground = '#1b1f27';
const ink = '#d5dae3';
const palette = [
  ['#3b4252', '#f07178', '#8fce7e', '#e6c26a', '#7aa7f0', '#c792ea', '#62c4d0', '#d5dae3'],
  ['#6b7489', '#ff8b92', '#a9e59a', '#ffd98a', '#9cc0ff', '#ddb0ff', '#86dfe9', '#ffffff'],
];

if (process.argv.includes('--convert')) {
  process.stdout.write(svgOf(readFileSync(0, 'utf8')));
} else {
  writeFileSync(path.join(root, 'docs/images/board.svg'), svgOf(await takeScreen()));
}

/** Runs the demo on a terminal of its own to its end, and gives the screen that showed most. */
async function takeScreen() {
  const home = mkdtempSync(path.join(tmpdir(), 'giro-picture-'));
  const env = { HOME: home, TMPDIR: home, TMUX_TMPDIR: home, LC_ALL: 'C.UTF-8', TERM: 'xterm-256color' };
  const tmux = (...args) =>
    execFileSync('tmux', ['-u', '-f', '/dev/null', '-L', 'picture', ...args], {
      env: { ...env, PATH: process.env.PATH },
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: 10_000,
    });
  const program = [process.execPath, path.join(root, 'bin/giro.js'), 'demo'];
  try {
    tmux('new-session', '-d', '-x', String(columns), '-y', String(rows), '-s', 'picture', ...program);
    return await bestScreen(tmux);
  } finally {
    end(tmux);
    rmSync(home, { recursive: true, force: true });
  }
}

async function bestScreen(tmux) {
  let best = { worth: 0, screen: '' };
  for (const last = Date.now() + longestMs; Date.now() < last; await delay(50)) {
    const screen = screenOf(tmux);
    if (screen === null) break;
    const text = screen.replace(colours, '');
    if (text.includes('❯') && !text.includes(`── ${selected} `)) tmux('send-keys', '-t', 'picture', 'Down');
    else if (worthOf(text) > best.worth) best = { worth: worthOf(text), screen };
  }
  if (best.worth < 60) throw new Error(`the demo never showed enough:\n${best.screen}`);
  return best.screen;
}

/** `null`: the demo has ended, and its terminal with it. */
function screenOf(tmux) {
  try {
    return tmux('capture-pane', '-e', '-p', '-t', 'picture');
  } catch {
    return null;
  }
}

function worthOf(text) {
  const shown = words.filter((word) => new RegExp(`^..\\S ${word} `, 'm').test(text)).length;
  const isVerified = new RegExp(`❯ ≟ verifying +${selected}`).test(text);
  const [, log = ''] = text.split(/^── .*\n/m);
  const logRows = log.split('\n').filter((row) => row.trim() !== '').length;
  return shown * 10 + (isVerified ? 5 : 0) + Math.min(5, logRows);
}

/** When the demo has come to its end there is no server any more. */
function end(tmux) {
  try {
    tmux('kill-server');
  } catch {
    // Gone.
  }
}

/** Draws a screen: a window with a title bar, each row at its place. */
function svgOf(screen) {
  const lines = screen.replace(/\n$/, '').split('\n');
  const width = margin.x * 2 + columns * cell.width;
  const height = margin.top + Math.max(lines.length, rows) * cell.height + margin.bottom;
  let style = plain();
  const drawn = lines.flatMap((line, row) => {
    const { cells, after } = readLine(line, style);
    style = after;
    return drawLine(cells, margin.top + row * cell.height);
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${round(width)}" height="${round(height)}" viewBox="0 0 ${round(width)} ${round(height)}" role="img" aria-label="The board of giro in a terminal">`,
    `<rect width="100%" height="100%" rx="8" fill="${ground}"/>`,
    ...['#ff5f57', '#febc2e', '#28c840'].map(
      (fill, at) => `<circle cx="${20 + at * 20}" cy="20" r="6" fill="${fill}"/>`,
    ),
    `<text x="${round(width / 2)}" y="24" text-anchor="middle" font-family="sans-serif" font-size="13" fill="#8b93a5">giro demo</text>`,
    `<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="${cell.font}" fill="${ink}" xml:space="preserve">`,
    ...drawn,
    '</g>',
    '</svg>',
    '',
  ].join('\n');
}

function plain() {
  return { bold: false, dim: false, italic: false, underline: false, inverse: false, front: null, back: null };
}

/** A line as characters with their style. tmux carries a style on into the next line. */
function readLine(line, before) {
  const cells = [];
  let style = before;
  for (const [token, codes] of line.matchAll(tokens)) {
    if (codes !== undefined) style = styled(style, codes.split(';').map(Number));
    else if (!/^[\p{Cc}\p{Cf}]/u.test(token)) cells.push({ text: token, style });
  }
  return { cells, after: style };
}

function styled(before, codes) {
  const style = { ...before };
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at];
    if (code === 0) Object.assign(style, plain());
    else if (code === 1) style.bold = true;
    else if (code === 2) style.dim = true;
    else if (code === 3) style.italic = true;
    else if (code === 4) style.underline = true;
    else if (code === 7) style.inverse = true;
    else if (code === 22) Object.assign(style, { bold: false, dim: false });
    else if (code === 23) style.italic = false;
    else if (code === 24) style.underline = false;
    else if (code === 27) style.inverse = false;
    else if (code === 38 || code === 48) {
      const [colour, used] = namedColour(codes.slice(at + 1));
      style[code === 38 ? 'front' : 'back'] = colour;
      at += used;
    } else if (code === 39) style.front = null;
    else if (code === 49) style.back = null;
    else if (code >= 30 && code <= 37) style.front = palette[0][code - 30];
    else if (code >= 40 && code <= 47) style.back = palette[0][code - 40];
    else if (code >= 90 && code <= 97) style.front = palette[1][code - 90];
    else if (code >= 100 && code <= 107) style.back = palette[1][code - 100];
  }
  return style;
}

/** What follows 38 or 48: one of 256, or red, green and blue; and how many codes that takes. */
function namedColour([kind, ...values]) {
  if (kind === 2) return [`#${values.slice(0, 3).map(hexOf).join('')}`, 4];
  const [number = 0] = values;
  if (number < 16) return [palette[number >> 3][number & 7], 2];
  if (number >= 232) return [`#${hexOf(8 + (number - 232) * 10).repeat(3)}`, 2];
  const steps = [0, 95, 135, 175, 215, 255];
  const at = number - 16;
  return [`#${[Math.floor(at / 36), Math.floor(at / 6) % 6, at % 6].map((step) => hexOf(steps[step])).join('')}`, 2];
}

function hexOf(value = 0) {
  return Math.min(255, value).toString(16).padStart(2, '0');
}

/** One element for each run of one style; signs beside ASCII stand alone, since another font may draw them wider. */
function drawLine(cells, y) {
  const runs = [];
  cells.forEach(({ text, style }, column) => {
    const last = runs.at(-1);
    const isPlain = /^[ -~]$/.test(text);
    const joins = last !== undefined && isPlain && last.isPlain && sameStyle(last.style, style);
    if (joins) last.text += text;
    else runs.push({ text, style, column, isPlain });
  });
  return runs.flatMap((run) => drawRun(run, y));
}

function sameStyle(left, right) {
  return Object.keys(left).every((key) => left[key] === right[key]);
}

function drawRun({ text, style, column }, y) {
  const x = round(margin.x + column * cell.width);
  const width = round(text.length * cell.width);
  const [front, back] = style.inverse ? [style.back ?? ground, style.front ?? ink] : [style.front, style.back];
  const box =
    back === null ? [] : [`<rect x="${x}" y="${round(y)}" width="${width}" height="${cell.height}" fill="${back}"/>`];
  const inside = text.trim();
  if (inside === '') return box;
  // A line of boxes is drawn as one, whatever the font does between two of them.
  if (/^─+$/.test(inside))
    return [
      ...box,
      `<rect x="${x}" y="${round(y + cell.height / 2)}" width="${width}" height="1" fill="${front ?? ink}" opacity="0.6"/>`,
    ];
  const attributes = [
    `x="${round(margin.x + (column + text.indexOf(inside)) * cell.width)}"`,
    `y="${round(y + 13)}"`,
    // The font of whoever looks may be wider or narrower than a cell.
    ...(inside.length > 1
      ? [`textLength="${round(inside.length * cell.width)}"`, 'lengthAdjust="spacingAndGlyphs"']
      : []),
    ...(front === null ? [] : [`fill="${front}"`]),
    ...(style.bold ? ['font-weight="bold"'] : []),
    ...(style.dim ? ['opacity="0.62"'] : []),
    ...(style.italic ? ['font-style="italic"'] : []),
    ...(style.underline ? ['text-decoration="underline"'] : []),
  ];
  return [...box, `<text ${attributes.join(' ')}>${escaped(inside)}</text>`];
}

function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

function round(value) {
  return Math.round(value * 100) / 100;
}
