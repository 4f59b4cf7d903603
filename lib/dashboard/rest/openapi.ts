import { packageVersion } from '../package-version.js';
import { roleFor, type Route, statusOf } from './route.js';
import type { Schema } from './schema.js';

type Schemas = Readonly<Record<string, Schema>>;

/** The route of the OpenAPI document. */
export function openApiRoute(routes: readonly Route[], schemas: Schemas): Route {
  const own: Route = {
    method: 'GET',
    path: 'openapi.json',
    summary: 'This document',
    scope: 'filtered',
    reply: { type: 'object' },
    handle: () => document,
  };
  const document = describeApi([...routes, own], schemas);
  return own;
}

/** OpenAPI 3.1, whose schemas are JSON Schema. */
function describeApi(routes: readonly Route[], schemas: Schemas) {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    const path = (paths[`/${route.path}`] ??= {});
    path[route.method.toLowerCase()] = describeRoute(route);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'nestjs-asynq dashboard',
      version: packageVersion,
      description:
        'A superset of the REST API of asynqmon. Parameters are percent-encoded; errors are plain text, with a code in X-Asynq-Error. ' +
        'A change that a browser may have sent needs the header X-Asynq-Console, or a body of JSON.',
    },
    servers: [{ url: '.' }],
    paths,
    components: { schemas, responses: { Error: ERROR } },
  };
}

const ERROR = {
  description:
    '400 bad input; 401, 403 access; 404 unknown; 405 read-only; 409 the state does not allow it; 413 too large; 503 Redis is away',
  headers: { 'X-Asynq-Error': { schema: { type: 'string' } } },
  content: { 'text/plain': { schema: { type: 'string' } } },
};

function describeRoute(route: Route) {
  const { reply, body, bodyOptional = false, attachment = false } = route;
  const content = (schema: Schema) => ({ 'application/json': { schema } });
  return {
    operationId: idOf(route),
    summary: route.summary,
    description: `Needs the role \`${roleFor(route)}\`${whereOf(route)}.`,
    parameters: [...pathParameters(route), ...queryParameters(route)],
    ...(body && { requestBody: { required: !bodyOptional, content: content(body) } }),
    responses: {
      [statusOf(route)]: {
        description: 'Done',
        ...(reply && { content: content(reply) }),
        ...(attachment && { content: { 'application/octet-stream': {} } }),
      },
      default: { $ref: '#/components/responses/Error' },
    },
  };
}

function whereOf({ path, scope }: Route): string {
  if (path.includes('{queue}')) return ' in the queue';
  return scope === 'filtered' ? ' in a queue, and concerns only queues in which the sender has it' : '';
}

const idOf = ({ method, path }: Route): string =>
  `${method.toLowerCase()}_${path.replaceAll(/[{}]/g, '').replaceAll(/[^\w]+/g, '_')}`;

const pathParameters = ({ path }: Route) =>
  [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));

const queryParameters = ({ query = [] }: Route) =>
  query.map(({ name, description, integer = false }) => ({
    name,
    in: 'query',
    required: false,
    description,
    schema: { type: integer ? 'integer' : 'string' },
  }));
