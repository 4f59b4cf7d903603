import { expect, it } from 'vitest';
import { LeasedLinks } from '../../../lib/broker/redis/scripts/leased-links.js';
import { packTexts } from '../../../lib/broker/redis/scripts/packed-texts.js';

/** As L.step_link of link-fields.lua makes it. */
function linkOf(run: string, step: string, since: number, told = ''): Buffer {
  const hint = Buffer.alloc(22);
  hint.writeDoubleLE(since);
  return Buffer.concat([
    Buffer.from(`${told}r`),
    Buffer.from([hint.length]),
    Buffer.from(`${run}\0`),
    hint,
    Buffer.from(`s:${step}`),
  ]);
}

const reply = (members: readonly string[], links: readonly (string | Buffer)[]): LeasedLinks =>
  new LeasedLinks(
    'mail',
    packTexts(members),
    links.map((link) => (link.length === 0 ? null : Buffer.from(link))),
  );

const watchers = (batch: string): string => JSON.stringify([{ k: 'b', to: 'home', batch }]);

it('reads the steps of many runs', () => {
  const runs = ['order:1', 'order:12', 'ordre:1', 'Ümläut', 'x'.repeat(300)];
  const names = ['pay', 'pya', 'päy', 'y'.repeat(200)];
  const steps = runs.flatMap((run) => names.map((step) => ({ run, step })));
  // Those of a run began together, or each at a time of its own.
  for (const apart of [0, 1]) {
    const sinceOf = (n: number): number => 1.7e12 + n * apart;
    const links = reply(
      [],
      steps.map(({ run, step }, n) => linkOf(run, step, sinceOf(n))),
    );
    for (const [n, { run, step }] of steps.entries()) {
      const id = `${run}~${step}`;
      expect(links.next(id)).toEqual([{ k: 'r', to: 'mail', run, since: String(sinceOf(n)), step }]);
      expect(links.step).toMatchObject({ name: step, steps: { run, idPrefix: `${run}~` } });
    }
    expect(links.next('id')).toBeUndefined();
    expect(links.step).toBeNull();
  }
});

it('leaves it to the script to find the step of a task that has failed before', () => {
  const links = reply([], [linkOf('run', 'a', 5), linkOf('run', 'b', 5, '-'), linkOf('run', 'c', 5)]);
  expect(links.next('run~a')).toMatchObject([{ step: 'a' }]);
  expect(links.next('run~b')).toMatchObject([{ step: 'b' }]);
  expect(links.step).toBeUndefined();
  expect(links.next('run~c')).toMatchObject([{ step: 'c' }]);
  expect(links.step).toMatchObject({ name: 'c' });
});

it('finds nobody in the link of a step that is damaged', () => {
  const whole = linkOf('run', '', 5);
  const parts = Array.from({ length: whole.length - 1 }, (_, n) => whole.subarray(0, n + 1));
  const links = reply([], [...parts, Buffer.alloc(100, 'r'), linkOf('run', 'step', 5)]);
  for (let n = 0; n <= parts.length; n++) expect(links.next('id')).toEqual([]);
  expect(links.next('id')).toMatchObject([{ run: 'run', step: 'step' }]);
});

it('knows the batch of a member by the whole of what its id begins with', () => {
  const batches = ['b1', 'b1~2', 'b2'];
  const links = reply(
    batches.flatMap((batch) => [`${batch}~`, watchers(batch)]),
    ['', '', '', '', '', '', '', watchers('other')],
  );
  const batchOf = (id: string): unknown => links.next(id)?.map((watcher) => 'batch' in watcher && watcher.batch);
  expect(['b1~1', 'b1~20', 'b1~2~3', 'b1~2~4', 'b2~1', 'b3~1', 'plain', 'b1~3'].map(batchOf)).toEqual([
    ['b1'],
    ['b1'],
    ['b1~2'],
    ['b1~2'],
    ['b2'],
    undefined,
    undefined,
    ['other'],
  ]);
});
