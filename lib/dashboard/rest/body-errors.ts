import { badBody, notJson, tooLargeForApplication } from '../dashboard.messages.js';
import { ApiError } from './api-error.js';

/** The errors of body parsers and of Fastify. */
interface BodyError {
  readonly type?: string;
  readonly code?: string;
  readonly status?: number;
  readonly statusCode?: number;
  readonly message: string;
}

type Next = (error?: unknown) => void;

interface ExpressRequest {
  /** Below the path where the application is mounted. */
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

/** The `type` of body-parser's errors; other middleware's errors are not ours. */
const EXPRESS_TYPE = /^(?:entity|encoding|charset|request|parameters|stream)\./;
const FASTIFY_CODE = /^FST_ERR_CTP_/;

/** Body errors by request. */
const refusals = new WeakMap<object, ApiError>();

/** Why the body parser refused the body, or `undefined`. */
export const refusalOf = (request: object): ApiError | undefined => refusals.get(request);

function toApiError({ status, statusCode, message }: BodyError, type: string | undefined): ApiError {
  const number = status ?? statusCode;
  if (number === 413) return new ApiError('TOO_LARGE', tooLargeForApplication);
  if (number === 415) return new ApiError('UNSUPPORTED_TYPE', notJson(type ?? 'of no type', message));
  return new ApiError('BAD_REQUEST', badBody(message));
}

/**
 * Express parses bodies before it matches routes. For paths of the console the error is kept and
 * the request goes on, because the guards come first; for other paths the error is passed on.
 *
 * @param wildcard the name of the wildcard in the console's paths, which identifies them below any
 * prefix
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

/** Fastify parses bodies after it has matched the route, so the route has an error handler. */
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
