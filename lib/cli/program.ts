import type { Command } from 'commander';
import { addCompletion } from './commands/completion.js';
import { addCronCommands } from './commands/cron.js';
import { addDash } from './commands/dash.js';
import { addGroupCommands } from './commands/group.js';
import { addQueueCommands } from './commands/queue.js';
import { addServerCommands } from './commands/server.js';
import { addStats } from './commands/stats.js';
import { addTaskActions } from './commands/task-act.js';
import { addTaskBulk } from './commands/task-all.js';
import { addTaskEnqueue } from './commands/task-enqueue.js';
import { addTaskReading } from './commands/task-list.js';
import { addVersion } from './commands/version.js';
import { addGroup, createRoot, type Frame } from './tree.js';

/** The whole tree of commands: asynq's, in its words, and what we have beside it. */
export function buildProgram(frame: Frame): Command {
  const root = createRoot(frame.terminal);
  addStats(root, frame);
  addDash(root, frame);
  addQueueCommands(root, frame);
  const task = addGroup(root, 'task', 'manage tasks');
  addTaskReading(task, frame);
  addTaskActions(task, frame);
  addTaskEnqueue(task, frame);
  addTaskBulk(task, frame);
  addServerCommands(root, frame);
  addCronCommands(root, frame);
  addGroupCommands(root, frame);
  addCompletion(root, frame);
  addVersion(root, frame);
  return root;
}
