import { expect, test } from 'vitest';
import { parseToml, type TomlPath } from '../../src/config/toml.js';
import { underlined } from './folder.js';

const text = `\uFEFF# comment [a]
top = 1 # x
[a.b]
"quo\\"ted" = "a # b" # c
'literal.key' = 'c:\\path\\'
dotted . deep = [ 1, [ 2, "three" ], # comment ]
  { x = 4 , "y z" = { w = [5] } },
]
multi = """
[not.a] \\"""
key = 1""""
raw = '''
# no
'''
date = 1979-05-27 07:32:00Z
when = 1979-05-27
[[list]]
n = 1
[[list]]
n = 2
[list.sub]
m = 3
[[list.inner]]
k = 4
[ spaced . "table" ]
inf = -inf
`;

function at(path: TomlPath, part: 'key' | 'value', source = text) {
  const file = parseToml({ file: 'x.toml', text: source });
  if (!file.ok) throw new Error(JSON.stringify(file.failure));
  const place = file.value.locate(path, part);
  return [place.line, underlined({ ...place, message: '' })];
}

test.each<[TomlPath, number, string, string]>([
  [['top'], 2, 'top', '1'],
  [['a', 'b'], 3, 'a.b', 'a.b'],
  [['a', 'b', 'quo"ted'], 4, '"quo\\"ted"', '"a # b"'],
  [['a', 'b', 'literal.key'], 5, "'literal.key'", "'c:\\path\\'"],
  [['a', 'b', 'dotted', 'deep'], 6, 'dotted . deep', '[ 1, [ 2, "three" ], # comment ]'],
  [['a', 'b', 'dotted'], 6, 'dotted . deep', 'dotted . deep'],
  [['a', 'b', 'dotted', 'deep', 1, 1], 6, '"three"', '"three"'],
  [['a', 'b', 'dotted', 'deep', 2, 'x'], 7, 'x', '4'],
  [['a', 'b', 'dotted', 'deep', 2, 'y z', 'w', 0], 7, '5', '5'],
  [['a', 'b', 'multi'], 9, 'multi', '"""'],
  [['a', 'b', 'raw'], 12, 'raw', "'''"],
  [['a', 'b', 'date'], 15, 'date', '1979-05-27 07:32:00Z'],
  [['a', 'b', 'when'], 16, 'when', '1979-05-27'],
  [['list', 0, 'n'], 18, 'n', '1'],
  [['list', 1], 19, 'list', 'list'],
  [['list', 1, 'n'], 20, 'n', '2'],
  [['list', 1, 'sub', 'm'], 22, 'm', '3'],
  [['list', 1, 'inner', 0, 'k'], 24, 'k', '4'],
  [['spaced', 'table', 'inf'], 26, 'inf', '-inf'],
])('%j is found', (path, line, key, value) => {
  expect(at(path, 'key')).toEqual([line, key]);
  expect(at(path, 'value')).toEqual([line, value]);
  expect(at(path, 'value', text.replaceAll('\n', '\r\n'))).toEqual([line, value]);
});

test('what is not written is looked for at its parents, then it is the file', () => {
  expect(at(['a', 'b', 'missing'], 'value')).toEqual([3, 'a.b']);
  expect(at(['top', 'x', 1], 'key')).toEqual([2, '1']);
  expect(at(['nowhere'], 'key')).toEqual([undefined, undefined]);
});
