import type { RedactionRule } from './rules.js';

const SECRET_NAMES = [
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
 * What the console hides by default: fields and headers with common names of secrets, in every
 * task, at any depth and in any spelling (`access_token`, `Access-Token`). This is a guess by name:
 * errors stay visible, and so does what no decoder can read, unless it contains one of the names.
 */
export const DEFAULT_REDACTION: RedactionRule = {
  type: '',
  fields: SECRET_NAMES.map((name) => `**.${name}`),
  headers: SECRET_NAMES,
  errors: 'show',
};
