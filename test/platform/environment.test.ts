import { expect, test } from 'vitest';
import { childEnvironment } from '../../src/platform/environment.js';

const wanted = {
  PATH: '/bin',
  HOME: '/home/me',
  USER: 'me',
  LOGNAME: 'me',
  SHELL: '/bin/sh',
  LANG: 'C.UTF-8',
  LC_ALL: 'C',
  TZ: 'UTC',
  XDG_CACHE_HOME: '/cache',
};

const unwanted = {
  GIT_DIR: '/elsewhere',
  GIT_CONFIG_COUNT: '1',
  CLAUDECODE: '1',
  NODE_OPTIONS: '--require evil',
  npm_config_registry: 'https://example.org',
  TMPDIR: '/tmp',
  SECRET: 'x',
  TOKEN: undefined,
  lc_all: 'no',
};

test('a child sees what every program needs and nothing else', () => {
  expect(childEnvironment({ ...unwanted, ...wanted })).toEqual(wanted);
});

test('named variables are added when they are set', () => {
  expect(childEnvironment({ PATH: '/bin', SECRET: 'x', TOKEN: undefined }, ['SECRET', 'TOKEN', 'OTHER'])).toEqual({
    PATH: '/bin',
    SECRET: 'x',
  });
});

test('a name is the whole name', () => {
  expect(
    childEnvironment({ PATHS: 'a', MY_LC_ALL: 'b', 'GIT_*': 'c', GIT_DIR: 'd', __proto__x: 'e' }, ['GIT_*']),
  ).toEqual({
    'GIT_*': 'c',
  });
});
