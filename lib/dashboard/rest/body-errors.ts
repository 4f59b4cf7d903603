import { badBody, notJson, tooLargeForApplication } from '../dashboard.messages.js';
import { ApiError } from './api-error.js';

/** What body parsers and Fastify raise. */
interface BodyError {
  readonly type?: string;
  readonly code?: string;
  readonly status?: number;
  readonly statusCode?: number;
  readonly message: string;
}

type Next = (error?: unknown) => void;

interface ExpressRequest {
  /** Below where the application is mounted. */
  readonly path: string;
  readonly headers: { readonly 'content-type'?: string };
}

interface ExpressApplication {
  readonly router?: { readonly stack: readonly { readonly route?: unknown; match?(path: string): unknown }[] };
  use(handler: (error: BodyError, request: ExpressRequest, response: unknown, next: Next) => void): void;
}

interface FastifyRoute {
  readonly config?: object;
  errorHandler?: (error: BodyError, request: ExpressRequest, reply: unknown) => void;
}

interface FastifyApplication {
  addHook(name: 'onRoute', hook: (route: FastifyRoute) => void): void;
}

/** What body-parser raises, by its `type`; the error of another middleware is none of ours. */
const EXPRESS_TYPE = /^(?:entity|encoding|charset|request|parameters|stream)\./;
const FASTIFY_CODE = /^FST_ERR_CTP_/;

/** Errors of bodies by the request they came with. */
const refusals = new WeakMap<object, ApiError>();

/** Why the application's body parser refused the body; `undefined` when it did not. */
export const refusalOf = (request: object): ApiError | undefined => refusals.get(request);

function toApiError({ status, statusCode, message }: BodyError, type: string | undefined): ApiError {
  const number = status ?? statusCode;
  if (number === 413) return new ApiError('TOO_LARGE', tooLargeForApplication);
  if (number === 415) return new ApiError('UNSUPPORTED_TYPE', notJson(type ?? 'of no type', message));
  return new ApiError('BAD_REQUEST', badBody(message));
}

/**
 * Express reads bodies before it looks for a route. For paths of the console the error is kept, and the request goes on to the console, whose guards
 * come first; for every other path the error goes its way.
 *
 * @param wildcard the name of the wildcard in the paths of the console, by which they are known whatever stands in front of them
 */
export function keepBodyErrorsOfExpress(application: ExpressApplication, wildcard: string): void {
  const isOurs = (path: string): boolean =>
    application.router?.stack.some((layer) => {
      const match = layer.route ? layer.match?.(path) : false;
      return typeof match === 'object' && match !== null && wildcard in ((match as { params?: object }).params ?? {});
    }) ?? false;
  application.use((error, request, _response, next) => {
    if (!EXPRESS_TYPE.test(String(error?.type)) || !isOurs(request.path)) return next(error);
    refusals.set(request, toApiError(error, request.headers['content-type']));
    next();
  });
}

/** Fastify reads bodies once it has found the route, which then has an error handler of its own. */
export function keepBodyErrorsOfFastify(
  application: FastifyApplication,
  marker: string,
  reply: (error: ApiError, reply: unknown) => void,
): void {
  application.addHook('onRoute', (route) => {
    if (!route.config || !(marker in route.config)) return;
    route.errorHandler = (error, request, response) => {
      if (!FASTIFY_CODE.test(String(error?.code))) throw error;
      reply(toApiError(error, request.headers['content-type']), response);
    };
  });
}
