import type { Dashboard } from '../../dashboard.js';
import { packageVersion } from '../../package-version.js';
import { DASHBOARD_ROLES } from '../../permissions.js';
import type { ApiRequest, Route } from '../route.js';
import { amount, flag, listOf, mapOf, oneOf, orNull, shape, text } from '../schema.js';

const config = ({ settings, broker, connectionName, outbox }: Dashboard, { permissions }: ApiRequest) => ({
  version: packageVersion,
  connection: connectionName,
  key_prefix: broker.keyPrefix,
  role: permissions.general ?? null,
  queue_roles: permissions.byQueue,
  read_only: settings.readOnly,
  refresh_ms: settings.refresh,
  decoders: settings.decoders.map(({ name }) => name),
  prometheus: settings.prometheus !== undefined,
  outbox: outbox !== undefined,
  title: settings.title,
  openapi: 'openapi.json',
});

export const configRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: 'config',
    summary: 'What this console is, and what the sender of the request may do',
    cached: false,
    scope: 'filtered',
    reply: shape({
      version: text(),
      connection: text(),
      key_prefix: text(),
      title: text(),
      openapi: text(),
      role: orNull(
        oneOf(DASHBOARD_ROLES, 'for what belongs to no queue, and in queues not named in queue_roles; null: none'),
      ),
      queue_roles: mapOf(oneOf(DASHBOARD_ROLES, 'by name; `mail*`: of all queues whose names begin so')),
      read_only: flag(),
      refresh_ms: amount('how often to poll'),
      decoders: listOf(text()),
      prometheus: flag('whether there is a /metrics'),
      outbox: flag('whether there is an /outbox'),
    }),
    handle: config,
  },
];
