/** Source text without its comments and the contents of its strings, at the same places, so that only code is counted. */

/** How a language writes comments and strings. */
export type Syntax = 'js' | 'c' | 'python' | 'ruby' | 'hash' | 'markup';

const doubleQuoted = String.raw`"(?:[^"\\\n]|\\[^])*"`;
const singleQuoted = String.raw`'(?:[^'\\\n]|\\[^])*'`;
const backQuoted = String.raw`${'`'}(?:[^${'`'}\\]|\\[^])*${'`'}`;
const block = String.raw`\/\*[^]*?(?:\*\/|(?![^]))`;
const regexLiteral = String.raw`\/(?<=(?:[=(,:;!&|?{}[\n]|\breturn)[ \t]*\/)(?![*/])(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.){0,300}\]){1,600}\/`;

const comments: Readonly<Record<Syntax, string>> = {
  js: String.raw`\/\/[^\n]*|${block}`,
  c: String.raw`\/\/[^\n]*|${block}`,
  python: '#[^\\n]*',
  ruby: String.raw`(?<![^\s;])#[^\n]*|^=begin\b[^]*?^=end\b`,
  hash: String.raw`(?<![^\s])[#;][^\n]*`,
  markup: '<!--[^]*?(?:-->|(?![^]))',
};

const strings: Readonly<Record<Syntax, string>> = {
  js: [doubleQuoted, singleQuoted, backQuoted, regexLiteral].join('|'),
  // A quote alone may be a lifetime.
  c: [
    String.raw`"""[^]*?"""`,
    String.raw`r(#{1,5})"[^]{0,20000}?"\1`,
    doubleQuoted,
    backQuoted,
    String.raw`'(?:[^'\\\n]|\\[^\n]{1,8})'`,
  ].join('|'),
  python: [String.raw`"""[^]*?"""`, String.raw`'''[^]*?'''`, doubleQuoted, singleQuoted].join('|'),
  ruby: [doubleQuoted, singleQuoted].join('|'),
  hash: [doubleQuoted, singleQuoted].join('|'),
  markup: '(?!)',
};

const patterns = new Map<string, RegExp>();

/** Blanks comments and the contents of strings. */
export function codeOf(text: string, syntax: Syntax): string {
  return text.replace(patternOf(syntax), (token) => (isString(token) ? quoted(token) : blank(token)));
}

/** Blanks comments only. */
export function withoutComments(text: string, syntax: Syntax): string {
  return text.replace(patternOf(syntax), (token) => (isString(token) ? token : blank(token)));
}

/** Comments and strings in one go, so that one inside the other is not taken for one. */
function patternOf(syntax: Syntax): RegExp {
  const known = patterns.get(syntax);
  if (known !== undefined) return known;
  const pattern = new RegExp(`${strings[syntax]}|${comments[syntax]}`, 'gm');
  patterns.set(syntax, pattern);
  return pattern;
}

function isString(token: string): boolean {
  return /^(?:["'`]|r#|\/(?![/*]))/.test(token);
}

function quoted(token: string): string {
  return token.slice(0, 1) + blank(token.slice(1, -1)) + token.slice(-1);
}

function blank(token: string): string {
  return token.replace(/[^\n]/g, ' ');
}
