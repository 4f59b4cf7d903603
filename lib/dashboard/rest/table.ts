import type { Route } from './route.js';
import { attemptRoutes } from './routes/attempts.js';
import { auditRoutes, auditSchemas } from './routes/audit.js';
import { batchRoutes, batchSchemas } from './routes/batches.js';
import { cancelRoutes } from './routes/cancel.js';
import { configRoutes } from './routes/config.js';
import { downloadRoutes } from './routes/downloads.js';
import { durationRoutes, durationSchemas } from './routes/durations.js';
import { enqueueRoutes } from './routes/enqueue.js';
import { entryRoutes, entrySchemas } from './routes/entries.js';
import { failureRoutes, failureSchemas } from './routes/failures.js';
import { keyRoutes, keySchemas } from './routes/keys.js';
import { listRoutes } from './routes/lists.js';
import { liveRoutes, liveSchemas } from './routes/live.js';
import { lockRoutes, lockSchemas } from './routes/locks.js';
import { matchingRoutes } from './routes/matching.js';
import { metricsRoutes } from './routes/metrics.js';
import { moveRoutes } from './routes/moves.js';
import { outboxRoutes, outboxSchemas } from './routes/outbox.js';
import { queueRoutes } from './routes/queues.js';
import { redisRoutes } from './routes/redis.js';
import { serverRoutes, serverSchemas } from './routes/servers.js';
import { stepRoutes } from './routes/steps.js';
import { taskRoutes } from './routes/tasks.js';
import { taskTypeRoutes, taskTypeSchemas } from './routes/task-types.js';
import { workflowRoutes, workflowSchemas } from './routes/workflows.js';
import { attemptSchemas } from './shapes/attempts.js';
import { explanationSchemas } from './shapes/explanation.js';
import { listedTaskSchemas } from './shapes/listed-task.js';
import { queueSchemas } from './shapes/queue.js';
import { stepSchemas } from './shapes/steps.js';
import { taskSchemas } from './shapes/task.js';
import { waitSchemas } from './shapes/task-wait.js';

/** All routes of the API. */
export const routes: readonly Route[] = [
  ...configRoutes,
  ...queueRoutes,
  ...failureRoutes,
  ...listRoutes,
  ...taskRoutes,
  ...taskTypeRoutes,
  ...stepRoutes,
  ...attemptRoutes,
  ...downloadRoutes,
  ...moveRoutes,
  ...matchingRoutes,
  ...cancelRoutes,
  ...enqueueRoutes,
  ...serverRoutes,
  ...entryRoutes,
  ...liveRoutes,
  ...auditRoutes,
  ...redisRoutes,
  ...metricsRoutes,
  ...durationRoutes,
  ...workflowRoutes,
  ...batchRoutes,
  ...outboxRoutes,
  ...lockRoutes,
  ...keyRoutes,
];

/** The schemas of replies, by name. */
export const schemas = {
  ...queueSchemas,
  ...failureSchemas,
  ...listedTaskSchemas,
  ...taskSchemas,
  ...taskTypeSchemas,
  ...waitSchemas,
  ...stepSchemas,
  ...attemptSchemas,
  ...explanationSchemas,
  ...serverSchemas,
  ...entrySchemas,
  ...liveSchemas,
  ...auditSchemas,
  ...workflowSchemas,
  ...batchSchemas,
  ...outboxSchemas,
  ...lockSchemas,
  ...keySchemas,
  ...durationSchemas,
};
