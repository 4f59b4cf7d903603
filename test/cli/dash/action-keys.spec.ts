import { beforeEach, describe, expect, it } from 'vitest';
import { MAX_PAGE_SIZE } from '../../../lib/broker/inspection.js';
import { type Reply, queryOf } from '../../../lib/cli/dash/query.js';
import { DashRig } from '../../support/dash.js';
import { arrangeEveryState } from '../../support/every-state.js';
import { request } from '../../support/messages.js';
import type { TaskState } from '../../../lib/wire/states.js';

describe('actions in the dashboard', () => {
  let dash: DashRig;
  beforeEach(() => {
    dash = new DashRig();
  });

  const stateOf = async (id: string): Promise<TaskState | undefined> =>
    (await dash.inspector.getTaskInfo('default', id))?.state;
  const idsIn = async (state: TaskState): Promise<string[]> =>
    (await dash.broker.listing.listIds('default', { state, size: MAX_PAGE_SIZE })).ids;

  /** Opens the tasks of a state of the queue `default`, which is the only one. */
  const open = async (state: string): Promise<void> => {
    await dash.read();
    await dash.press('enter');
    while (!dash.selected!.startsWith(state)) await dash.press('down');
    await dash.press('enter');
    if (state === 'aggregating') await dash.press('enter');
  };
  const enqueue = (...ids: string[]) =>
    dash.broker.producer.enqueue(
      'default',
      ids.map((id) => ({ ...request({ id }), processAt: 1_907_760_000 })),
    );

  it.each([
    ['R', 'scheduled', 'pending', 'Task "scheduled" is pending now.'],
    ['R', 'retry', 'pending', 'Task "retry" is pending now.'],
    ['R', 'archived', 'pending', 'Task "archived" is pending now.'],
    ['R', 'completed', 'pending', 'Task "completed" is pending now.'],
    ['R', 'aggregating', 'pending', 'Task "aggregating" is pending now.'],
    ['A', 'pending', 'archived', 'Task "pending" is archived.'],
    ['A', 'scheduled', 'archived', 'Task "scheduled" is archived.'],
    ['A', 'retry', 'archived', 'Task "retry" is archived.'],
    ['A', 'completed', 'archived', 'Task "completed" is archived.'],
    ['A', 'aggregating', 'archived', 'Task "aggregating" is archived.'],
  ])('%s: a task that is %s is %s', async (key, state, then, told) => {
    await arrangeEveryState(dash.broker);
    await open(state);
    await dash.press(key);
    expect(dash.status).toBe(told);
    expect(await stateOf(state)).toBe(then);
    expect(dash.text).not.toMatch(new RegExp(`^. ${state} `, 'm'));
  });

  it.each([
    ['R', 'pending', 'A pending task runs as soon as a server has a free slot.'],
    ['R', 'active', 'An active task cannot be run; C cancels it.'],
    ['A', 'active', 'An active task cannot be archived; C cancels it.'],
    ['A', 'archived', 'The task is archived already.'],
    ['D', 'active', 'An active task cannot be deleted; C cancels it.'],
    ['C', 'retry', 'Only active tasks can be cancelled; this one is retry: try A or D.'],
  ])('%s is refused for a task that is %s, in the list and in its own view', async (key, state, told) => {
    await arrangeEveryState(dash.broker);
    await open(state);
    for (const step of ['list', 'task']) {
      await dash.press(key);
      expect(dash.status, step).toBe(told);
      expect(await stateOf(state)).toBe(state);
      await dash.press('enter');
    }
  });

  it.each(['pending', 'scheduled', 'retry', 'archived', 'completed', 'aggregating'])(
    'deletes a task that is %s when it is asked for twice',
    async (state) => {
      await arrangeEveryState(dash.broker);
      await open(state);
      for (const no of ['n', 'escape', 'N', 'q']) {
        await dash.press('D');
        expect(dash.status).toBe(`Delete this ${state} task? ${state}`);
        expect(dash.lines.at(-1)).toBe(' y yes  n no');
        await dash.press('j', 'D', 'enter');
        expect(dash.status).toMatch(/^Delete this/);
        await dash.press(no);
        expect(dash.status).toBe('Nothing was done.');
        expect(await stateOf(state)).toBe(state);
      }
      await dash.press('D', 'y');
      expect(dash.status).toBe(`Task "${state}" is deleted.`);
      expect(await stateOf(state)).toBeUndefined();
    },
  );

  it('cancels an active task at once, and asks first for several', async () => {
    const cancelled: string[] = [];
    await dash.broker.cancellation.subscribeCancellations((id) => cancelled.push(id));
    await dash.broker.producer.enqueue('default', [request({ id: 'a' }), request({ id: 'b' }), request({ id: 'c' })]);
    await dash.broker.consumer.exchange('default', { settle: [], take: 3 });
    await open('active');
    await dash.press('C');
    expect(dash.status).toBe('Asked to cancel task "a".');
    expect(cancelled).toEqual(['a']);
    await dash.press('*', 'C');
    expect(dash.status).toBe('Cancel 3 active tasks?');
    await dash.press('y');
    expect(dash.status).toBe('Asked to cancel 3 tasks.');
    expect(cancelled).toEqual(['a', 'a', 'b', 'c']);
  });

  it('acts on all marked tasks, on every page', async () => {
    await enqueue('a', 'b', 'c', 'd', 'e', 'f');
    await dash.resize(80, 7);
    await open('scheduled');
    expect(dash.lines.slice(2, 5).map((line) => line.slice(0, 3))).toEqual(['> a', '  b', '  c']);
    await dash.press('space', 'space', 'down', 'space', 'down', 'up');
    expect(dash.lines.slice(2, 5).map((line) => line.slice(0, 3))).toEqual([' *d', '> e', '  f']);
    expect(dash.position).toBe('3 marked · 5 of 6');
    await dash.press('A');
    expect(dash.status).toBe('Archive 3 scheduled tasks?');
    await dash.press('y');
    expect(dash.status).toBe('3 tasks are archived.');
    expect(dash.position).toBe('2 of 3');
    expect(await idsIn('archived')).toEqual(['a', 'b', 'd']);
    await dash.press('g', '*', 'R');
    expect(dash.status).toBe('3 tasks are pending now.');
    expect(await idsIn('scheduled')).toEqual([]);
  });

  it('selects the next task after an action', async () => {
    await enqueue('a', 'b', 'c');
    await open('scheduled');
    await dash.press('R', 'R');
    expect(dash.selected).toMatch(/^c /);
    expect(await idsIn('scheduled')).toEqual(['c']);
  });

  it('does nothing to a task that has left the state shown', async () => {
    await enqueue('a', 'b');
    await open('scheduled');
    await dash.press('*', 'D');
    await dash.inspector.runTask('default', 'a');
    await dash.press('y');
    expect(dash.status).toBe('Task "b" is deleted; 1 task not: task "a" is not in state scheduled any more');
    expect(await stateOf('a')).toBe('pending');
    expect(await stateOf('b')).toBeUndefined();
  });

  it('does nothing to the task that took the place of the selected one', async () => {
    await enqueue('a', 'b', 'c');
    await open('scheduled');
    await dash.press('j');
    await dash.inspector.deleteTask('default', 'b');
    await dash.read();
    expect(dash.selected).toBeUndefined();
    for (const key of ['R', 'A', 'D', 'space', 'enter']) {
      await dash.press(key);
      expect(dash.status).toBe('The selected row disappeared; select another first.');
    }
    expect(await idsIn('scheduled')).toEqual(['a', 'c']);
    await dash.press('down');
    expect(dash.selected).toMatch(/^c /);
    await dash.press('R');
    expect(await idsIn('scheduled')).toEqual(['a']);
  });

  it('does nothing to a task that has disappeared, and says so', async () => {
    await enqueue('a');
    await open('scheduled');
    await dash.press('enter');
    await dash.inspector.deleteTask('default', 'a');
    await dash.press('r');
    expect(dash.text).toContain('  ID            a');
    expect(dash.position).toBe('gone from the queue');
    await dash.press('A');
    expect(dash.status).toBe('The task is no longer in the queue.');
  });

  it('acts on a task by the state shown', async () => {
    await enqueue('a');
    await open('scheduled');
    await dash.press('enter');
    await dash.press('A');
    expect(dash.status).toBe('Task "a" is archived.');
    expect(dash.text).toMatch(/State +archived/);
    await dash.press('R');
    expect(dash.status).toBe('Task "a" is pending now.');
    await dash.press('D', 'y');
    expect(dash.status).toBe('Task "a" is deleted.');
  });

  it('pauses queues, and ends their pause', async () => {
    await enqueue('a');
    await dash.read();
    await dash.press('P');
    expect(dash.status).toBe('Queue "default" is paused.');
    expect(dash.selected).toMatch(/^default +paused/);
    expect(await dash.inspector.getQueueInfo('default')).toMatchObject({ paused: true });
    for (const key of ['enter', 'enter', 'escape']) {
      await dash.press(key);
      expect(dash.lines[0]).toContain('default (paused)');
      await dash.press('P');
      expect(dash.status).toBe('Queue "default" is resumed.');
      expect(dash.lines[0]).not.toContain('paused');
      await dash.press('P');
    }
    await dash.inspector.unpauseQueue('default');
    await dash.press('P');
    expect(dash.status).toBe('Queue "default" was resumed already.');
  });

  it('does not bring back a deleted queue', async () => {
    await enqueue('a');
    await dash.read();
    await dash.inspector.deleteQueue('default', { force: true });
    await dash.press('P');
    expect(dash.status).toContain('queue not found');
    expect(await dash.inspector.unpauseQueue('default')).toBe(false);
  });

  it('names the command for actions on all tasks of a state', async () => {
    await enqueue('a');
    await dash.read();
    for (const next of ['enter', 'escape']) {
      await dash.press('D');
      expect(dash.status).toBe('Open a state first. All of its tasks at once: nestjs-asynq task deleteall.');
      await dash.press('space');
      expect(dash.status).toBe('Only tasks can be marked.');
      await dash.press(next);
    }
    expect(await idsIn('scheduled')).toEqual(['a']);
  });

  it('offers only deletion for damaged tasks', async () => {
    await enqueue('a');
    await open('scheduled');
    const query = queryOf(dash.model);
    const reply = (await dash.backend.read(query)) as Extract<Reply, { kind: 'tasks' }>;
    const rows = [...reply.rows, { id: 'ghost', task: undefined, damage: 'it has no message' }];
    dash.take({ type: 'reply', query, reply: { ...reply, rows } });
    dash.take({ type: 'key', key: 'G' });
    expect(dash.selected).toMatch(/^ghost +damaged: it has no message$/);
    for (const key of ['R', 'A', 'enter']) {
      expect(dash.take({ type: 'key', key }).request).toBeUndefined();
      expect(dash.status).toMatch(/cannot be read.*: it has no message$/);
    }
    dash.take({ type: 'key', key: 'D' });
    expect(dash.take({ type: 'key', key: 'y' }).request).toMatchObject({ action: 'delete', ids: ['ghost'] });
  });

  it('performs one action at a time', async () => {
    await enqueue('a', 'b');
    await open('scheduled');
    expect(dash.take({ type: 'key', key: 'R' }).request).toMatchObject({ action: 'run', ids: ['a'] });
    expect(dash.status).toMatch(/^working …/);
    expect(dash.take({ type: 'key', key: 'A' }).request).toBeUndefined();
    expect(dash.take({ type: 'key', key: 'P' }).request).toBeUndefined();
    dash.take({ type: 'result', result: { text: 'Done.', good: true, actedOn: ['a'] } });
    expect(dash.status).toBe('Done.');
    expect(dash.take({ type: 'key', key: 'A' }).request).toMatchObject({ action: 'archive' });
  });
});
