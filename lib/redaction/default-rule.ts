import type { RedactionRule } from './rules.js';

const NAMES = [
  'authorization',
  'proxyAuthorization',
  'password',
  'passwd',
  'secret',
  'clientSecret',
  'token',
  'accessToken',
  'refreshToken',
  'idToken',
  'cookie',
  'setCookie',
  'apiKey',
  'xApiKey',
  'privateKey',
];

/**
 * What the console hides without being told: fields and headers that are usually called like a secret, in every task, at any depth and in any
 * spelling (`access_token`, `Access-Token`). It is a guess by name: errors stay visible, and so does what no decoder can read, unless
 * one of the names occurs in it.
 */
export const DEFAULT_REDACTION: RedactionRule = {
  type: '',
  fields: NAMES.map((name) => `**.${name}`),
  headers: NAMES,
  errors: 'show',
};
