import { DASHBOARD_ROLES } from '../../access.js';
import type { Dashboard } from '../../dashboard.js';
import type { Call, Route } from '../route.js';
import { amount, flag, listOf, oneOf, shape, text } from '../schema.js';
import { packageVersion } from '../../package-version.js';

const config = ({ settings, broker, connectionName }: Dashboard, { role }: Call) => ({
  version: packageVersion,
  connection: connectionName,
  key_prefix: broker.keyPrefix,
  role,
  read_only: settings.readOnly,
  refresh_ms: settings.refresh,
  decoders: settings.decoders.map(({ name }) => name),
  prometheus: settings.prometheus !== undefined,
  title: settings.title,
  openapi: 'openapi.json',
});

export const configRoutes: readonly Route[] = [
  {
    ...{ method: 'GET', path: 'config', summary: 'What this console is, and what the sender of the request may do' },
    cached: false,
    reply: shape({
      ...{ version: text(), connection: text(), key_prefix: text(), title: text(), openapi: text() },
      role: oneOf(DASHBOARD_ROLES),
      read_only: flag(),
      refresh_ms: amount('how often to ask for news'),
      decoders: listOf(text()),
      prometheus: flag('whether there is a /metrics'),
    }),
    handle: config,
  },
];
