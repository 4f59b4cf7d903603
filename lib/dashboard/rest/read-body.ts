import { noBodyParser, notJson, tooLarge } from '../dashboard.messages.js';
import { ApiError, BadRequest } from './api-error.js';
import type { HttpRequest } from './http-request.js';
import type { Route } from './route.js';
import { checkValue } from './schema.js';

/** As in asynqmon. Express itself takes 100 kB at first: `app.useBodyParser('json', { limit: '1mb' })`. */
const MOST_BYTES = 1_000_000;

const JSON_TYPE = /^application\/json\s*(;|$)/i;

/**
 * The body, when the route has one and it fits. A form of another site can send no JSON, so nothing else is taken.
 *
 * @throws ApiError
 */
export function readBody(route: Route, { headers, body }: HttpRequest): unknown {
  const length = Number(headers['content-length'] ?? 0);
  if (length > MOST_BYTES) throw new ApiError('TOO_LARGE', tooLarge(MOST_BYTES));
  if (!route.body) return undefined;
  const sent = length > 0 || headers['transfer-encoding'] !== undefined;
  if (!sent) {
    if (route.bodyOptional) return undefined;
    throw new BadRequest(`a JSON body is needed: ${route.body.required?.join(', ') ?? 'an object'}`);
  }
  const type = headers['content-type'];
  if (!type || !JSON_TYPE.test(type)) throw new ApiError('UNSUPPORTED_TYPE', notJson(type ?? 'of no type'));
  if (body === undefined) throw new ApiError('UNSUPPORTED_TYPE', noBodyParser);
  checkValue(body, route.body, 'the body');
  return body;
}
