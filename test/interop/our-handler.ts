import { EventEmitter, once } from 'node:events';
import { setTimeout as work } from 'node:timers/promises';

import { RevokeTask, SkipRetry } from '../../lib/errors.js';
import type { TaskContext } from '../../lib/task/context.js';
import type { PeerEvent, PeerStep } from '../support/peer.js';

/** A step as it arrives: bytes in base64. */
export type SentStep = Omit<PeerStep, 'result'> & { result?: string };

/** What held attempts wait for; a task may be released before it begins. */
export class Gates {
  private readonly open = new EventEmitter().setMaxListeners(0);
  private readonly released = new Set<string>();

  release(id: string): void {
    this.released.add(id);
    this.open.emit(id);
  }

  async pass(id: string, signal: AbortSignal): Promise<void> {
    if (!this.released.has(id)) await once(this.open, id, { signal });
  }
}

type Emit = (event: PeerEvent['event'], fields: Partial<PeerEvent>) => void;

const now = (): number => performance.timeOrigin + performance.now();

/** One attempt: does the step of its turn and tells when it begins and ends. */
export const attempt = async (
  task: TaskContext,
  server: string,
  steps: readonly SentStep[],
  gates: Gates,
  emit: Emit,
): Promise<unknown> => {
  const { id, type, queue, headers, retried, maxRetry } = task;
  const payload = task.payload.toString('base64');
  const deadline = task.deadline.getTime();
  emit('start', { server, id, type, queue, payload, headers, retried, maxRetry, deadline, at: now() });
  try {
    const result = await perform(task, steps[Math.min(retried, steps.length - 1)]!, gates);
    emit('end', { server, id, at: now() });
    return result;
  } catch (error) {
    emit('end', { server, id, at: now(), error: error instanceof Error ? error.message : String(error) });
    throw error;
  }
};

const perform = async (task: TaskContext, step: SentStep, gates: Gates): Promise<unknown> => {
  if (step.do === 'block') return block(step.ms ?? 0);
  if (step.ms) await work(step.ms);
  const error = step.error ?? '';
  switch (step.do) {
    case 'ok':
      return resultOf(step);
    case 'hold':
      await gates.pass(task.id, task.signal);
      return resultOf(step);
    case 'hang':
      return aborted(task.signal);
    case 'fail':
      throw new Error(error);
    case 'skipRetry':
      throw new Error(error, { cause: new SkipRetry() });
    case 'revoke':
      throw new RevokeTask(error);
    case 'panic':
      // What a mistake in a handler throws need not be an Error.
      throw error as unknown;
  }
};

/** Keeps the event loop busy. */
function block(milliseconds: number): undefined {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}

const resultOf = ({ result }: SentStep): Buffer | undefined =>
  result === undefined ? undefined : Buffer.from(result, 'base64');

const aborted = async (signal: AbortSignal): Promise<never> => {
  if (!signal.aborted) await once(signal, 'abort');
  throw signal.reason;
};
