import { parseDuration } from '../duration.js';
import type { TaskOptions } from '../task/options.js';
import { formatOption, type EnqueueOption } from '../wire/options.js';

/**
 * The options as asynq writes them in a published entry, such as `Queue("low")`. They must have
 * been checked.
 */
export function optionTexts(options: TaskOptions): string[] {
  return enqueueOptions(options).map(formatOption);
}

function enqueueOptions(options: TaskOptions): EnqueueOption[] {
  const found: EnqueueOption[] = [];
  const { queue, maxRetry, timeout, deadline, expiresIn, onExpiry } = options;
  const { unique, processAt, processIn, taskId, retention, group, headers } = options;
  const time = (
    name: 'Timeout' | 'ExpiresIn' | 'Unique' | 'ProcessIn' | 'Retention',
    value: TaskOptions['expiresIn'],
  ): void => {
    if (value !== undefined && value !== false) found.push({ name, value: parseDuration(value, name) });
  };
  if (queue !== undefined) found.push({ name: 'Queue', value: queue });
  if (maxRetry !== undefined) found.push({ name: 'MaxRetry', value: maxRetry });
  time('Timeout', timeout);
  if (deadline !== undefined && deadline !== false) found.push({ name: 'Deadline', value: deadline });
  time('ExpiresIn', expiresIn);
  if (onExpiry !== undefined) found.push({ name: 'OnExpiry', value: onExpiry });
  time('Unique', typeof unique === 'object' ? unique.for : unique);
  if (processAt !== undefined) found.push({ name: 'ProcessAt', value: processAt });
  time('ProcessIn', processIn);
  if (taskId !== undefined) found.push({ name: 'TaskID', value: taskId });
  time('Retention', retention);
  if (group !== undefined && group !== false) found.push({ name: 'Group', value: group });
  for (const [key, value] of Object.entries(headers ?? {})) found.push({ name: 'Header', value: [key, value] });
  return found;
}
