/** Made-up secrets of every kind, put together here so that no scanner takes this file for one that holds some. */
import { describe, expect, test } from 'vitest';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { secretPatterns } from '../../src/gates/guard-secrets.js';
import { guard, rules } from './guarded.js';

/** Letters and digits that look thrown together. */
function made(length: number, letters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'): string {
  return Array.from({ length }, (_, at) => letters[(at * at * 7 + at * 13 + 5) % letters.length]).join('');
}

const hex = '0123456789abcdef';
const upper = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

const samples: Readonly<Record<string, readonly string[]>> = {
  'AWS access key': [`AKIA${made(16, upper)}`, `ASIA${made(16, upper)}`],
  'AWS secret key': [`aws_secret_access_key = "${made(40)}"`],
  'GitHub token': [`ghp_${made(36)}`, `gho_${made(36)}`, `ghs_${made(40)}`, `github_pat_${made(82)}`],
  'GitLab token': [`glpat-${made(20)}`, `glrt-${made(20)}`],
  'Slack token': [`xoxb-${made(12, '0123456789')}-${made(12, '0123456789')}-${made(24)}`],
  'Slack webhook': [`https://hooks.slack.com/services/T${made(8, upper)}/B${made(8, upper)}/${made(24)}`],
  'Google API key': [`AIza${made(35)}`],
  'Google OAuth secret': [`GOCSPX-${made(28)}`],
  'Stripe key': [`sk_live_${made(24)}`, `rk_live_${made(99)}`, `whsec_${made(32)}`],
  'npm token': [`npm_${made(36)}`],
  'PyPI token': [`pypi-AgE${made(60)}`],
  'RubyGems key': [`rubygems_${made(48, hex)}`],
  'OpenAI key': [`sk-proj-${made(48)}`, `sk-${made(20)}T3BlbkFJ${made(20)}`],
  'Anthropic key': [`sk-ant-api03-${made(93)}`],
  'Hugging Face token': [`hf_${made(34, 'abcdefghijklmnopqrstuvwxyzABCDEF')}`],
  'SendGrid key': [`SG.${made(22)}.${made(43)}`],
  'Twilio key': [`SK${made(32, hex)}`],
  'DigitalOcean token': [`dop_v1_${made(64, hex)}`],
  'Docker token': [`dckr_pat_${made(27)}`],
  'Shopify token': [`shpat_${made(32, hex)}`],
  'Databricks token': [`dapi${made(32, hex)}`],
  'Grafana token': [`glsa_${made(32)}_${made(8, hex)}`],
  'Groq key': [`gsk_${made(52)}`],
  'xAI key': [`xai-${made(80)}`],
  'age key': [`AGE-SECRET-KEY-1${made(58, 'QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L')}`],
  'Azure storage key': [`AccountKey=${made(86)}==`],
  'private key': [`-----BEGIN RSA PRIVATE KEY-----\n${made(64)}\n`, `-----BEGIN PRIVATE KEY-----\\n${made(64)}`],
};

test('every pattern has a sample and stands in docs/guards.md', async () => {
  const names = secretPatterns.map(({ name }) => name);
  expect(Object.keys(samples)).toEqual(names);
  const document = await readFile(resolve(import.meta.dirname, '../../docs/guards.md'), 'utf8');
  expect(names.filter((name) => !document.includes(`| ${name} |`))).toEqual([]);
});

describe.each(Object.entries(samples))('%s', (name, secrets) => {
  test.each(secrets.map((secret, at) => [at + 1, secret] as const))(
    'is found, and not printed (%i)',
    async (_, secret) => {
      const findings = await guard({ 'a.ts': 'one\n' }, { 'a.ts': `one\nconst key = '${secret}';\n` });
      expect(findings).toEqual([expect.objectContaining({ rule: 'secret', file: 'a.ts', line: 2 })]);
      expect(findings[0]?.message).toContain(`(${name}, fingerprint `);
      expect(JSON.stringify(findings)).not.toContain(secret.slice(-12));
    },
  );
});

test('one that was there already, there or elsewhere in the work, is not added', async () => {
  const line = `key = "ghp_${made(36)}"\n`;
  expect(await rules({ a: line }, { a: `${line}more\n` })).toEqual([]);
  expect(await rules({ a: line, b: 'b\n' }, { a: 'none\n', b: line })).toEqual(['secret b:1']);
  expect(await rules({ 'src/a': line }, { 'lib/a': `${line}more\n` }, { touches: ['src/a'] })).toEqual([]);
});

test('placeholders, hashes and names are none', async () => {
  const lines = [
    'AKIAIOSFODNN7EXAMPLE',
    `ghp_${'x'.repeat(36)}`,
    `sk_test_${made(24)}`,
    'sk-ant-api03-...',
    `sha256:${made(64, hex)}`,
    `"integrity": "sha512-${made(86)}=="`,
    '-----BEGIN PUBLIC KEY-----',
    '-----BEGIN PRIVATE KEY-----\n...',
    `commit ${made(40, hex)}`,
  ];
  expect(await rules({}, { 'a.md': `${lines.join('\n')}\n` })).toEqual([]);
});

test('another secret of the kind has another finding, so that accepting one accepts only it', async () => {
  const messages = async (seed: string) =>
    (await guard({}, { a: `ghp_${seed}${made(35)}\n` })).map(({ message }) => message);
  expect(await messages('a')).not.toEqual(await messages('b'));
  expect(await messages('a')).toEqual(await messages('a'));
});
