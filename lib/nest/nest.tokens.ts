import type { InjectionToken } from '@nestjs/common';
import { AsynqInspector } from '../inspector/inspector.js';
import { AsynqSemaphores } from '../limits/semaphores.js';
import { AsynqScheduler } from '../scheduler/scheduler.js';
import { AsynqClient } from './asynq-client.js';
import { AsynqServer } from './asynq-server.js';
import { AsynqTaskEvents } from './events/asynq-task-events.js';
import { AsynqHealth } from './health/asynq-health.js';
import { AsynqHealthIndicator } from './health/asynq-health-indicator.js';
import { DEFAULT_CONNECTION } from './names/nest.constants.js';

/** The broker of the unnamed connection. Override it with InMemoryBroker in tests: then no connection to Redis is opened. */
export const ASYNQ_BROKER = 'ASYNQ_BROKER';

const isDefault = (name: string | undefined): boolean => name === undefined || name === DEFAULT_CONNECTION;

/** The token of a connection's broker; {@link ASYNQ_BROKER} for the unnamed one. */
export const getAsynqBrokerToken = (name?: string): string =>
  isDefault(name) ? ASYNQ_BROKER : `${ASYNQ_BROKER}:${name}`;

/** The token of a connection's client; the class AsynqClient for the unnamed one. */
export const getAsynqClientToken = (name?: string): InjectionToken<AsynqClient> =>
  isDefault(name) ? AsynqClient : `ASYNQ_CLIENT:${name}`;

/** The token of a connection's server; the class AsynqServer for the unnamed one. */
export const getAsynqServerToken = (name?: string): InjectionToken<AsynqServer> =>
  isDefault(name) ? AsynqServer : `ASYNQ_SERVER:${name}`;

/** The token of a connection's inspector; the class AsynqInspector for the unnamed one. */
export const getAsynqInspectorToken = (name?: string): InjectionToken<AsynqInspector> =>
  isDefault(name) ? AsynqInspector : `ASYNQ_INSPECTOR:${name}`;

/** The token of a connection's semaphores; the class AsynqSemaphores for the unnamed one. */
export const getAsynqSemaphoresToken = (name?: string): InjectionToken<AsynqSemaphores> =>
  isDefault(name) ? AsynqSemaphores : `ASYNQ_SEMAPHORES:${name}`;

/** The token of a connection's scheduler; the class AsynqScheduler for the unnamed one. */
export const getAsynqSchedulerToken = (name?: string): InjectionToken<AsynqScheduler> =>
  isDefault(name) ? AsynqScheduler : `ASYNQ_SCHEDULER:${name}`;

/** The token of a connection's task events; the class AsynqTaskEvents for the unnamed one. */
export const getAsynqTaskEventsToken = (name?: string): InjectionToken<AsynqTaskEvents> =>
  isDefault(name) ? AsynqTaskEvents : `ASYNQ_TASK_EVENTS:${name}`;

/** The token of a connection's health; the class AsynqHealth for the unnamed one. */
export const getAsynqHealthToken = (name?: string): InjectionToken<AsynqHealth> =>
  isDefault(name) ? AsynqHealth : `ASYNQ_HEALTH:${name}`;

/** The token of a connection's indicator for Terminus; the class AsynqHealthIndicator for the unnamed one. */
export const getAsynqHealthIndicatorToken = (name?: string): InjectionToken<AsynqHealthIndicator> =>
  isDefault(name) ? AsynqHealthIndicator : `ASYNQ_HEALTH_INDICATOR:${name}`;
