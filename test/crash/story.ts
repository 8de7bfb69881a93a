/**
 * The Spec that the crash matrix kills: an Issue that is repaired from its findings, two that conflict, one that depends on
 * them, and a gap that validation finds and a planner fills. Whatever is killed, its end is the same.
 */
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { makeProject, type GiroRun, type Project } from '../rig/giro.js';

const interposer = pathToFileURL(resolve(import.meta.dirname, 'interposer.mjs')).href;
const diskRecorder = pathToFileURL(resolve(import.meta.dirname, 'disk-recorder.mjs')).href;

/**
 * Every start is noted first: what is paid is counted. Where the other side is in the file, as a conflict or since it landed
 * while giro was gone, both stay.
 */
const agent = `prompt=$(cat)
echo "$GIRO_ROLE $GIRO_ISSUE $GIRO_ATTEMPT" >> "$HOME/ledger"
if [ "$GIRO_ROLE" = planner ]; then
  echo '{"issues":[{"slug":"gap","title":"The gap","body":"Write gap.txt."}]}' > "$GIRO_ENVELOPE"
  exit 0
fi
both() { grep -qE 'left|right' shared.txt && set -- 'left right'; printf 'one\\n%s\\nthree\\n' "$1" > shared.txt; }
case $GIRO_ISSUE in
  01-plain) echo plain > plain.txt ;;
  02-repaired) case $prompt in *"BAD found"*) echo good ;; *) echo BAD ;; esac > repaired.txt ;;
  03-left) both left ;;
  04-right) both right ;;
  05-after) echo after > after.txt ;;
  *gap) echo gap > gap.txt ;;
esac
git add -A && git -c user.name=a -c user.email=a@example.org commit -qm "work of $GIRO_ISSUE" || true
echo '{"status":"done"}' > "$GIRO_ENVELOPE"
`;

/** Starts of agents and planners in a run that nobody disturbs: the repair and the loser of the conflict twice. */
const undisturbedStarts = 9;

const agentsAtOnce = 4;

/** Makes the project of the story. */
export function makeStory(): Promise<Project> {
  return makeProject({
    files: {
      'shared.txt': 'one\ntwo\nthree\n',
      'check.sh': 'if grep -q BAD *.txt; then echo "BAD found"; exit 1; fi\n',
    },
    issues: {
      '01-plain': {},
      '02-repaired': {},
      '03-left': {},
      '04-right': {},
      '05-after': { frontmatter: 'depends-on: [03, 04]' },
    },
    agent,
    budget: 'attempts = 20\nrounds = 20',
    verify:
      'test = "sh check.sh"\n[verify.gap]\nrun = "test -f gap.txt || { echo gap.txt is missing; exit 1; }"\non = ["spec"]',
    toml: '[evidence]\nflaky = "fail"',
  });
}

/** Runs giro and kills it before a step; `null`: nobody disturbs it. `disk`: where it is noted what is synced. */
export function runStory(
  story: Project,
  killAt: string | null,
  { steps, disk }: { readonly steps?: string; readonly disk?: string } = {},
): Promise<GiroRun> {
  const recorder = disk === undefined ? '' : ` --import=${diskRecorder}`;
  const env = {
    NODE_OPTIONS: `--import=${interposer}${recorder}`,
    ...(disk === undefined ? {} : { GIRO_DISK: disk }),
    ...(killAt === null ? {} : { GIRO_KILL_AT: killAt }),
    ...(steps === undefined ? {} : { GIRO_STEPS: steps }),
  };
  const isWatched = killAt !== null || steps !== undefined;
  return story.start(['implement', story.spec, '--json', '-c', String(agentsAtOnce)], isWatched ? { env } : {}).ended;
}

/** What the integration branch holds at the end, whatever happened on the way. */
const wanted = {
  'after.txt': 'after',
  'gap.txt': 'gap',
  'plain.txt': 'plain',
  'repaired.txt': 'good',
  'shared.txt': 'one\nleft right\nthree',
};

/** Says what is not as it would be had nobody killed giro `kills` times; empty when all is. */
export async function faultsOf(story: Project, kills: number): Promise<readonly string[]> {
  const { spec } = story;
  const git = (...args: readonly string[]): Promise<string> => story.git(...args);
  const faults: string[] = [];
  const expect = (what: string, is: string, should: string): void => {
    if (is !== should) faults.push(`${what} is ${JSON.stringify(is)}, not ${JSON.stringify(should)}`);
  };
  const tip = `giro/${spec}`;
  for (const [file, content] of Object.entries(wanted))
    expect(file, (await story.show(tip, file)) ?? 'absent', content);
  const files = (await git('ls-tree', '--name-only', tip)).split('\n');
  const others = ['README.md', 'agent.sh', 'check.sh', 'docs', 'giro.toml'];
  const strange = files.filter((file) => !(file in wanted) && !others.includes(file));
  expect('what nobody wrote', strange.join(' '), '');
  const issues = (await git('ls-tree', '--name-only', tip, `docs/specs/${spec}/issues/`)).split('\n');
  expect('number of Issues', String(issues.length), '6');
  const states = (await git('grep', '-h', '^state:', tip, '--', `docs/specs/${spec}`)).split('\n');
  expect('states', [...new Set(states)].join(' '), 'state: done');
  expect('worktrees', String((await git('worktree', 'list')).split('\n').length), '1');
  const proof = await story.giro(['proof', spec]);
  expect('exit of giro proof', String(proof.code), '0');
  faults.push(...paidFaults(await readFile(join(story.home, 'ledger'), 'utf8'), kills));
  return faults;
}

/** No attempt is paid twice, and each kill costs at most what was running then. */
function paidFaults(ledger: string, kills: number): readonly string[] {
  const starts = ledger.trim().split('\n');
  const attempts = starts.filter((start) => start.startsWith('worker'));
  const twice = attempts.filter((start, at) => attempts.indexOf(start) !== at);
  const most = undisturbedStarts + kills * agentsAtOnce;
  return [
    ...twice.map((start) => `paid twice: ${start}`),
    ...(starts.length > most ? [`${String(starts.length)} starts, at most ${String(most)} are needed`] : []),
  ];
}
