import type { GoPeer, GoState } from './go-peer.js';

/** A state that has a list of its own; `group` of aggregating tasks. */
export interface Listed {
  readonly queue: string;
  readonly state: GoState;
  readonly group?: string;
}

/** What people do to tasks with the tools of asynq. */
export interface Operator {
  /** One by one, by their ids. */
  act(action: 'run' | 'archive' | 'delete', from: Listed, ids: readonly string[]): Promise<void>;
  /** Returns how many tasks it was. */
  actOnAll(action: 'run' | 'archive' | 'delete', from: Listed): Promise<number>;
  removeQueue(queue: string, force: boolean): Promise<void>;
}

/** asynq's command: each of its subcommands is one call of asynq's inspector. */
export const asynqCommand = (go: GoPeer): Operator => ({
  async act(action, { queue }, ids) {
    for (const id of ids) await go.call(`${action}Task`, { queue, id });
  },
  actOnAll: (action, from) => go.call(`${action}All`, from),
  removeQueue: (queue, force) => go.call('deleteQueue', { queue, force }),
});

/** asynqmon, as its page calls it. */
export async function asynqmon(go: GoPeer): Promise<Operator> {
  const url = await go.call<string>('asynqmon');
  const call = async (method: string, path: string): Promise<Record<string, unknown>> => {
    const reply = await fetch(`${url}/api/queues/${path}`, { method });
    const text = await reply.text();
    if (!reply.ok) throw new Error(`asynqmon replied ${reply.status} to ${method} ${path}: ${text}`);
    return text ? (JSON.parse(text) as Record<string, unknown>) : {};
  };
  const listOf = ({ queue, state, group }: Listed): string =>
    `${queue}/${group === undefined ? '' : `groups/${group}/`}${state}_tasks`;
  return {
    async act(action, from, ids) {
      for (const id of ids) {
        if (action === 'delete') await call('DELETE', `${listOf(from)}/${id}`);
        else await call('POST', `${listOf(from)}/${id}:${action}`);
      }
    },
    async actOnAll(action, from) {
      const reply = await call(action === 'delete' ? 'DELETE' : 'POST', `${listOf(from)}:${action}_all`);
      return Number(reply['scheduled'] ?? reply['archived'] ?? reply['deleted']);
    },
    removeQueue: async (queue) => void (await call('DELETE', queue)),
  };
}
