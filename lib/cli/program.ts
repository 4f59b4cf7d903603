import type { Command } from 'commander';
import { addCompletion } from './commands/completion.js';
import { addCronCommands } from './commands/cron.js';
import { addGroupCommands } from './commands/group.js';
import { addQueueCommands } from './commands/queue.js';
import { addServerCommands } from './commands/server.js';
import { addStats } from './commands/stats.js';
import { addTaskActions } from './commands/task-act.js';
import { addTaskBulk } from './commands/task-all.js';
import { addTaskEnqueue } from './commands/task-enqueue.js';
import { addTaskReading } from './commands/task-list.js';
import { addVersion } from './commands/version.js';
import type { Terminal } from './terminal.js';
import { addGroup, createRoot, type Outcome } from './tree.js';

/** The whole tree of commands: asynq's, in its words, and what we have beside it. */
export function buildProgram(terminal: Terminal, outcome: Outcome): Command {
  const root = createRoot(terminal);
  addStats(root, terminal, outcome);
  addQueueCommands(root, terminal, outcome);
  const task = addGroup(root, 'task', 'manage tasks');
  addTaskReading(task, terminal, outcome);
  addTaskActions(task, terminal, outcome);
  addTaskEnqueue(task, terminal, outcome);
  addTaskBulk(task, terminal, outcome);
  addServerCommands(root, terminal, outcome);
  addCronCommands(root, terminal, outcome);
  addGroupCommands(root, terminal, outcome);
  addCompletion(root, terminal, outcome);
  addVersion(root, terminal, outcome);
  return root;
}
