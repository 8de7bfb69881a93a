/** Keys and tokens in lines that the work adds. A finding says where one is and of which kind, never what it is. */
import { createHash } from 'node:crypto';
import type { Finding } from '../issue.js';
import { linesIn, textOf, type Content } from './guard-contents.js';
import { guardFinding, type GuardRule, type RuleContext } from './guard-rule.js';

/** One kind of secret. */
export interface SecretPattern {
  readonly name: string;
  /** One of them stands in every text that holds one: what is quick to look for. */
  readonly marks: readonly string[];
  readonly pattern: RegExp;
}

/** What is looked for; docs/guards.md has the same list. */
export const secretPatterns: readonly SecretPattern[] = [
  {
    name: 'AWS access key',
    marks: ['AKIA', 'ASIA', 'ABIA', 'ACCA'],
    pattern: /\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b/g,
  },
  {
    name: 'AWS secret key',
    marks: ['aws', 'AWS', 'Aws'],
    pattern: /\baws_?(?:secret_?)?(?:access_?)?key["']?\s*(?:[:=]|=>)\s*["']?([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])/gi,
  },
  {
    name: 'GitHub token',
    marks: ['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_', 'github_pat_'],
    pattern: /\b(?:gh[pousr]_[A-Za-z0-9]{36,251}|github_pat_[A-Za-z0-9_]{82})\b/g,
  },
  {
    name: 'GitLab token',
    marks: ['glpat-', 'glptt-', 'gldt-', 'glrt-', 'glsoat-', 'glagent-', 'gloas-'],
    pattern: /\bgl(?:pat|ptt|dt|rt|soat|agent|oas)-[A-Za-z0-9_-]{20,64}/g,
  },
  {
    name: 'Slack token',
    marks: ['xox', 'xapp-'],
    pattern: /\bxox[abeoprs]-(?:\d{1,20}-){1,5}[A-Za-z0-9-]{10,80}|\bxapp-\d-[A-Z0-9]+-\d+-[a-f0-9]{20,}/g,
  },
  {
    name: 'Slack webhook',
    marks: ['hooks.slack.com'],
    pattern: /\bhooks\.slack\.com\/services\/T[A-Z0-9]{6,}\/B[A-Z0-9]{6,}\/[A-Za-z0-9]{20,}/g,
  },
  { name: 'Google API key', marks: ['AIza'], pattern: /\bAIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])/g },
  { name: 'Google OAuth secret', marks: ['GOCSPX-'], pattern: /\bGOCSPX-[A-Za-z0-9_-]{28}(?![A-Za-z0-9_-])/g },
  {
    name: 'Stripe key',
    marks: ['k_live_', 'whsec_'],
    pattern: /\b(?:sk|rk)_live_[A-Za-z0-9]{20,247}\b|\bwhsec_[A-Za-z0-9+/]{32,}/g,
  },
  { name: 'npm token', marks: ['npm_'], pattern: /\bnpm_[A-Za-z0-9]{36}\b/g },
  { name: 'PyPI token', marks: ['pypi-AgE'], pattern: /\bpypi-AgE[A-Za-z0-9_-]{50,}/g },
  { name: 'RubyGems key', marks: ['rubygems_'], pattern: /\brubygems_[a-f0-9]{48}\b/g },
  {
    name: 'OpenAI key',
    marks: ['sk-'],
    pattern: /\bsk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{40,}|\bsk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}\b/g,
  },
  { name: 'Anthropic key', marks: ['sk-ant-'], pattern: /\bsk-ant-[a-z]+\d{2}-[A-Za-z0-9_-]{60,}/g },
  { name: 'Hugging Face token', marks: ['hf_'], pattern: /\bhf_[A-Za-z]{34}\b/g },
  { name: 'SendGrid key', marks: ['SG.'], pattern: /\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}\b/g },
  { name: 'Twilio key', marks: ['SK'], pattern: /\bSK[a-f0-9]{32}\b/g },
  { name: 'DigitalOcean token', marks: ['dop_v1_', 'doo_v1_', 'dor_v1_'], pattern: /\bdo[opr]_v1_[a-f0-9]{64}\b/g },
  { name: 'Docker token', marks: ['dckr_pat_'], pattern: /\bdckr_pat_[A-Za-z0-9_-]{27}(?![A-Za-z0-9_-])/g },
  { name: 'Shopify token', marks: ['shp'], pattern: /\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b/g },
  { name: 'Databricks token', marks: ['dapi'], pattern: /\bdapi[a-f0-9]{32}\b/g },
  { name: 'Grafana token', marks: ['glsa_'], pattern: /\bglsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}\b/g },
  { name: 'Groq key', marks: ['gsk_'], pattern: /\bgsk_[A-Za-z0-9]{52}\b/g },
  { name: 'xAI key', marks: ['xai-'], pattern: /\bxai-[A-Za-z0-9]{80}\b/g },
  { name: 'age key', marks: ['AGE-SECRET-KEY-1'], pattern: /\bAGE-SECRET-KEY-1[02-9AC-HJ-NP-Z]{58}\b/g },
  { name: 'Azure storage key', marks: ['AccountKey='], pattern: /\bAccountKey=[A-Za-z0-9+/]{86}==/g },
  {
    name: 'private key',
    marks: ['PRIVATE KEY'],
    pattern: /-----BEGIN (?:[A-Z]{1,20} ){0,5}PRIVATE KEY(?: BLOCK)?-----\s*(?:\\n)?[A-Za-z0-9+/=:\s\\-]{60}/g,
  },
];

/** Finds secrets that no changed file held before. */
export function secretRule({ work }: RuleContext): GuardRule {
  const found: { readonly path: string; readonly line: number; readonly name: string; readonly text: string }[] = [];
  const before = new Set<string>();
  return {
    // One that was there may have been moved here from any file that changed.
    needsBefore: ({ status }, after) => status === 'deleted' || secretsIn(after).length > 0,
    see({ change, before: old, after }) {
      for (const { text } of secretsIn(old)) before.add(text);
      for (const secret of secretsIn(after)) found.push({ path: change.path, ...secret });
    },
    findings: () =>
      found
        .filter(({ text }) => !before.has(text))
        .map(({ path, line, name, text }): Finding => {
          // Whoever accepts one does not accept the next one in its place.
          const print = createHash('sha256').update(text).digest('hex').slice(0, 6);
          const message = `what looks like a secret (${name}, fingerprint ${print}) is added; take it out, and read it from the environment; it stays in the history, so revoke it if it is a real one`;
          return guardFinding(work, { rule: 'secret', file: path, line, message });
        }),
  };
}

interface Secret {
  readonly name: string;
  readonly line: number;
  readonly text: string;
}

const known = new WeakMap<Content, readonly Secret[]>();

function secretsIn(content: Content | null): readonly Secret[] {
  if (content?.kind !== 'text') return [];
  const seen = known.get(content);
  if (seen !== undefined) return seen;
  const text = textOf(content);
  const possible = secretPatterns.filter(({ marks }) => marks.some((mark) => text.includes(mark)));
  const lineAt = possible.length === 0 ? null : linesIn(text);
  const secrets = possible.flatMap(({ name, pattern }) =>
    [...text.matchAll(pattern)]
      .map((match) => ({ name, line: lineAt?.(match.index) ?? 1, text: match[1] ?? match[0] }))
      .filter((secret) => !isPlaceholder(secret.text)),
  );
  known.set(content, secrets);
  return secrets;
}

/** What stands in documents: `AKIAIOSFODNN7EXAMPLE`, `ghp_xxxxxxxx`. */
function isPlaceholder(text: string): boolean {
  return /example|placeholder|your[_-]|redacted|dummy|xxxxx|\.{3}/i.test(text) || new Set(text.slice(-16)).size < 5;
}
