/** How tests look in the languages that guards can read: which files hold them, and what is counted there. */
import type { Syntax } from './guard-source.js';

/** One language. */
export interface Language {
  readonly name: string;
  readonly syntax: Syntax;
  /** Paths of files with tests. */
  readonly files: RegExp;
  /** Each match is one test, or the head of a table of them. */
  readonly tests: RegExp;
  readonly assertions: RegExp;
  /** Assertions that hold whatever the code does. */
  readonly trivial: RegExp;
  /** What takes tests out of a run: skips, and selections of others. */
  readonly marks: RegExp;
  /** Heads of tables that are followed by a list of rows, each of them a test of its own. */
  readonly tables?: RegExp;
  /** The same, where the rows stand elsewhere in the file under the name that is the first group. */
  readonly namedTables?: RegExp;
  /** What is one row each, where a table has no head. They are only ever counted in favour. */
  readonly rows?: RegExp;
  /** Where the tests of a file begin; the whole file when absent. */
  readonly begin?: (path: string, code: string) => number;
}

const javascript: Language = {
  name: 'JavaScript and TypeScript',
  syntax: 'js',
  files:
    /(?:(?:^|\/)(?:tests?|__tests__|specs?|e2e|cypress)\/.*|[._-](?:tests?|spec|cy|e2e)|(?:^|\/)test(?:-[^/]*)?)\.[cm]?[jt]sx?$/,
  tests:
    /(?<![\w.$])(?:[xf]?it|x?test|specify|ftest)(?:\.(?:concurrent|sequential|serial|each|for|only|skip|skipIf|runIf|fails|failing|fixme|extend))*\s*[(`]|\bt\.test\s*\(|\b(?:Deno|QUnit)\.test(?:\.\w+)*\s*\(/g,
  assertions:
    /\bexpect(?:TypeOf)?(?:\.(?:soft|poll))?(?:<[^>()]{0,200}>)?\s*\(|\bassert(?:Type)?(?:\.\w+)*\s*\(|\bt\.(?:assert\.)?(?:is|not|ok|notOk|true|false|truthy|falsy|equal|notEqual|deepEqual|notDeepEqual|strictEqual|same|throws|throwsAsync|notThrows|rejects|match|regex|like|snapshot|pass|fail)\s*\(|\.should\b/g,
  trivial:
    /\bexpect\s*\(\s*(true|false|null|undefined|\d+)\s*\)\.(?:toBe|toEqual|toStrictEqual)\s*\(\s*\1\s*\)|\bexpect\s*\(\s*(?:true|1)\s*\)\.toBeTruthy\s*\(\s*\)|\bassert(?:\.ok)?\s*\(\s*(?:true|1)\s*[,)]/g,
  marks:
    /(?<![\w.$])(?:it|test|describe|suite|context|specify|bench)(?:\.\w+)*\.(?:skip|only|skipIf|runIf|fails|failing|fixme)\b|(?<![\w.$])(?:x|f)(?:it|test|describe|context)\s*[(`.]|\b(?:t|this|ctx|context)\.skip\s*\(|[{,]\s*(?:skip|only)\s*:\s*(?!false\b)/g,
  tables: /\.each\s*(?:<[^()]{0,200}>)?\s*(?:\(\s*)?(?=[[`])/g,
  namedTables: /\.each\s*(?:<[^()]{0,200}>)?\s*\(\s*([A-Za-z_$][\w$]*)\s*\)/g,
};

const python: Language = {
  name: 'Python',
  syntax: 'python',
  files: /(?:(?:^|\/)tests?\/.*|(?:^|\/)(?:test_[^/]*|[^/]*_test|tests?|conftest))\.py$/,
  tests: /^[ \t]*(?:async[ \t]+)?def[ \t]+test\w*[ \t]*\(/gm,
  assertions: /\bassert(?=[\s(])|\bassert\w+\s*\(|\bpytest\.(?:raises|warns|fail|approx_raises)\b/g,
  trivial: /\bassert\s+(?:True|1)\b(?!\s*(?:[=<>!]=?|\.|\[|\band\b|\bin\b|\bis\b))|\bassertTrue\s*\(\s*True\s*\)/g,
  marks:
    /\bmark\.(?:skip|skipif|xfail)\b|\bunittest\.(?:skip\w*|expectedFailure)\b|^[ \t]*@(?:skip\w*|expectedFailure)\b|\bpytest\.(?:skip|xfail|importorskip)\s*\(|\bskipTest\s*\(|\bcollect_ignore\w*\s*=|\b__test__\s*=\s*False\b/gm,
  tables: /\bparametrize\s*\([^[()]{0,400}(?:\([^()]{0,400}\)[^[()]{0,400})?(?=[[(])/g,
  namedTables:
    /\bparametrize\s*\(\s*(?:"[^"]*"|'[^']*'|\([^()]{0,400}\)|\[[^[\]]{0,400}\])\s*,\s*(?:argvalues\s*=\s*)?([A-Za-z_]\w*)/g,
};

const go: Language = {
  name: 'Go',
  syntax: 'c',
  files: /_test\.go$/,
  tests:
    /^func[ \t]+(?:\([^)\n]{0,200}\)[ \t]*)?(?:Test|Benchmark|Fuzz|Example)\w*[ \t]*\(|\bt\.Run\s*\(|\b(?:It|Specify|Entry)\s*\(\s*"/gm,
  assertions:
    /\b(?:t|b|f|tb)\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)\s*\(|\b(?:assert|require|is|qt|must|check)\.[A-Z]\w*\s*\(|\b(?:Expect|Eventually|Consistently)\w*\s*\(|\bs\.(?:Require\(\)\.|Assert\(\)\.)?(?:Equal|NoError|Error|True|False|Nil|NotNil|Len|Contains)\w*\s*\(/g,
  trivial: /\b(?:assert|require)\.True\s*\(\s*t\s*,\s*true\s*\)/g,
  marks:
    /\b(?:t|b|f|tb|s\.T\(\))\.(?:Skip|Skipf|SkipNow)\s*\(|\b[FPX](?:It|Describe|Context|Entry|Specify)\s*\(|\bSkip\s*\(\s*"/g,
  rows: /^[ \t]*(?:"[^"]*":\s*)?\{.*\},?[ \t]*$/gm,
};

const rust: Language = {
  name: 'Rust',
  syntax: 'c',
  files: /\.rs$/,
  tests:
    /#\[(?:\w{1,40}::){0,4}(?:test|rstest|test_case|quickcheck|wasm_bindgen_test)\b[^\]]{0,400}\]|#\[case(?:::\w{1,40})?\s*\([^\]]{0,400}\]/g,
  assertions: /\b(?:prop_)?assert\w*!\s*[([{]|#\[should_panic\b/g,
  trivial: /\bassert!\s*\(\s*true\s*[,)]/g,
  // The assertion of all cases stands once.
  rows: /#\[(?:case(?:::\w{1,40})?|test_case)\s*\(/g,
  marks: /#\[(?:cfg_attr\([^\],]{0,200},\s*)?ignore\b/g,
  // Code asserts too: in a file with both, tests begin at their module.
  begin: (path, code) => {
    if (/(?:^|\/)(?:tests?|benches)(?:\/|\.rs$)/.test(path)) return 0;
    const at = code.search(/#\[cfg\((?:[^\]]{0,200}\b)?test\b/);
    return at < 0 ? code.length : at;
  },
};

const java: Language = {
  name: 'Java, Kotlin, Groovy and Scala',
  syntax: 'c',
  files: /(?:(?:^|\/)src\/(?:test|\w+Test|integrationTest)\/.*|(?:Tests?|IT|Spec|TestCase))\.(?:java|kt|groovy|scala)$/,
  tests:
    /@(?:Test|ParameterizedTest|RepeatedTest|TestFactory|TestTemplate|Property)\b(?:\s*\([^()\n]{0,200}\))?(?:\s*@\w{1,60}(?:\s*\([^()]{0,4000}\))?)*/g,
  assertions:
    /\b(?:assert|expect|fail|verify)\w*\s*[({]|\bassert\s|\bAssertions?\.\w+\s*\(|\bshould\w*\b|\bandExpect\s*\(|\bexpected\s*=/g,
  trivial: /\bassertTrue\s*\(\s*true\s*\)|\bassertThat\s*\(\s*true\s*\)\.isTrue\s*\(\s*\)/g,
  marks: /@(?:Disabled\w*|Ignore\w*|EnabledIf\w*)\b|\bassume(?:True|False|That)\s*\(/g,
  rows: /(?<!\w)(?:Arguments\.of|arguments)\s*\(/g,
  tables: /@(?:CsvSource|ValueSource)\s*\(\s*(?:\w+\s*=\s*)?(?=\{)/g,
};

const ruby: Language = {
  name: 'Ruby',
  syntax: 'ruby',
  files: /(?:(?:^|\/)(?:spec|tests?)\/.*|_(?:spec|test)|(?:^|\/)test_[^/]*)\.rb$/,
  tests: /^[ \t]*[xf]?(?:it|specify|example|scenario|test|should)\b[ \t]*(?:\(|["'{]|do\b)|^[ \t]*def[ \t]+test_\w+/gm,
  assertions:
    /\bexpect\b\s*[({]|\bis_expected\b|\b(?:assert|refute)(?:_\w+)?\b|\.(?:must|wont)_\w+|\.should(?:_not)?\b|\bflunk\b/g,
  trivial: /\bassert\s*\(?\s*true\b|\bexpect\s*\(\s*true\s*\)\.to\s+(?:eq|be)\b\s*\(?\s*true\b/g,
  marks:
    /^[ \t]*(?:skip|pending)\b|^[ \t]*(?:x|f)(?:it|describe|context|specify|example|scenario|feature)\b|[,({]\s*:?(?:focus|skip|pending)\b(?:\s*(?::|=>)\s*(?!false))?/gm,
};

/** Files that `[protect] tests` names in a language that is not known here. */
const anyLanguage: Language = {
  name: 'any',
  syntax: 'hash',
  files: /(?!)/,
  tests: /(?!)/g,
  assertions: /\b(?:assert|expect|should|verify|require|fail)\w*/gi,
  trivial: /(?!)/g,
  marks: /(?!)/g,
};

const languages: readonly Language[] = [javascript, python, go, rust, java, ruby];
const byEnding: readonly (readonly [RegExp, Language])[] = [
  [/\.[cm]?[jt]sx?$/, javascript],
  [/\.py$/, python],
  [/\.go$/, go],
  [/\.rs$/, rust],
  [/\.(?:java|kt|groovy|scala)$/, java],
  [/\.rb$/, ruby],
];

/** The language of a file with tests; `null` when it is not one. `named`: `[protect] tests` names it. */
export function testLanguage(path: string, named: boolean): Language | null {
  if (named) return byEnding.find(([ending]) => ending.test(path))?.[1] ?? anyLanguage;
  return languages.find(({ files }) => files.test(path)) ?? null;
}
