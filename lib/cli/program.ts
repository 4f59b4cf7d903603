import type { Command } from 'commander';
import { addBatchCommands } from './commands/batch.js';
import { addCompletion } from './commands/completion.js';
import { addCronCommands } from './commands/cron.js';
import { addDash } from './commands/dash.js';
import { addGroupCommands } from './commands/group.js';
import { addLockCommands } from './commands/lock.js';
import { addOutboxCommands } from './commands/outbox.js';
import { addQueueCommands } from './commands/queue.js';
import { addServerCommands } from './commands/server.js';
import { addStats } from './commands/stats.js';
import { addTaskActions } from './commands/task-act.js';
import { addTaskBulk } from './commands/task-all.js';
import { addTaskEnqueue } from './commands/task-enqueue.js';
import { addTaskExplain } from './commands/task-explain.js';
import { addTaskReading } from './commands/task-list.js';
import { addTaskAttempts } from './commands/task-attempts.js';
import { addTaskSteps } from './commands/task-steps.js';
import { addVersion } from './commands/version.js';
import { addWorkflowCommands } from './commands/workflow.js';
import { addGroup, createRoot, type Invocation } from './tree/tree.js';

/** The whole tree of commands: asynq's, in its words, and what we have beside it. */
export function buildProgram(invocation: Invocation): Command {
  const root = createRoot(invocation.terminal);
  addStats(root, invocation);
  addDash(root, invocation);
  addQueueCommands(root, invocation);
  const task = addGroup(root, 'task', 'manage tasks');
  addTaskReading(task, invocation);
  addTaskExplain(task, invocation);
  addTaskSteps(task, invocation);
  addTaskAttempts(task, invocation);
  addTaskActions(task, invocation);
  addTaskEnqueue(task, invocation);
  addTaskBulk(task, invocation);
  addServerCommands(root, invocation);
  addCronCommands(root, invocation);
  addGroupCommands(root, invocation);
  addLockCommands(root, invocation);
  addWorkflowCommands(root, invocation);
  addBatchCommands(root, invocation);
  addOutboxCommands(root, invocation);
  addCompletion(root, invocation);
  addVersion(root, invocation);
  return root;
}
