/** @module nestjs-asynq/dashboard */
export { AsynqDashboardModule } from './dashboard.module.js';
export type {
  AsynqDashboardAsyncOptions,
  AsynqDashboardOptions,
  AsynqDashboardOptionsFactory,
  AsynqDashboardSettings,
  AsynqDashboardStatics,
  DashboardGuard,
} from './dashboard.options.js';
export type { DashboardActor } from './audit/actor.js';
export type { DashboardAccess, DashboardRequest } from './access.js';
export type { DashboardPermission, DashboardQueueRole, DashboardQueueRoles, DashboardRole } from './permissions.js';
export type { DecodedTask, PayloadDecoder } from './payload/decoders.js';
export { DEFAULT_REDACTION } from '../redaction/default-rule.js';
export type { RedactedParts, Redaction, RedactionFunction, RedactionRule } from '../redaction/rules.js';
