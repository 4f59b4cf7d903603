import { describe, expect, expectTypeOf, it } from 'vitest';
import { InvalidTaskError, InvalidWorkflowError } from '../../../lib/errors.js';
import { defineTask } from '../../../lib/task/definition.js';
import type { WorkflowContext } from '../../../lib/task/workflow-context.js';
import { chain, parallel, step } from '../../../lib/workflows/shapes.js';
import { workflow, type Workflow } from '../../../lib/workflows/workflow.js';

interface Order {
  readonly orderId: string;
}
const Pay = defineTask<Order, { captureId: string }>('payment:capture');
const Receipt = defineTask<Order, number>('receipt:send');
const Close = defineTask<Order>('order:close');
const Warm = defineTask<undefined, boolean>('cache:warm');
const order = { orderId: '7' };

type StepsOf<W> = W extends Workflow<infer Steps, string> ? { [N in keyof Steps]: Steps[N] } : never;
const edgesOf = (flow: Workflow<object>) => Object.fromEntries(flow.steps.map(({ name, after }) => [name, after]));

describe('a workflow', () => {
  const fulfil = workflow('order:fulfil')
    .add('pay', Pay, order)
    .add('receipt', Receipt, order, { after: 'pay' })
    .add('close', Close, order, { after: ['pay', 'receipt'], onFailure: 'run', optional: true });

  it('has the steps in the order they were added', () => {
    expect(fulfil.steps).toEqual([
      { name: 'pay', task: Pay, payload: order, after: [], onFailure: 'cancel', optional: false, options: undefined },
      expect.objectContaining({ name: 'receipt', after: ['pay'] }),
      expect.objectContaining({ name: 'close', after: ['pay', 'receipt'], onFailure: 'run', optional: true }),
    ]);
  });

  it('never changes: two workflows may go on from one', () => {
    const base = workflow('base').add('a', 't');
    const left = base.add('b', 't', undefined, { after: 'a' });
    const right = base.add('b', 'other', undefined, { after: 'a' }).add('c', 't', undefined, { after: 'b' });
    expect(base.steps.map(({ name }) => name)).toEqual(['a']);
    expect(left.steps.map(({ name, task }) => [name, task])).toEqual([
      ['a', 't'],
      ['b', 't'],
    ]);
    expect(edgesOf(right)).toEqual({ a: [], b: ['a'], c: ['b'] });
    expect(right.steps[1]!.task).toBe('other');
  });

  it('takes 10,000 steps in a moment, and refuses one more', () => {
    let flow: Workflow = workflow('wide');
    for (let n = 0; n < 10_000; n++) flow = flow.add(`s${n}`, 't', { n });
    expect(flow.steps).toHaveLength(10_000);
    expect(() => flow.add('last', 't').steps).toThrow('workflow "wide" has 10,001 steps; the most is 10,000');
  });

  it('refuses more than 100,000 edges', () => {
    let flow: Workflow = workflow('dense');
    const first = Array.from({ length: 317 }, (_, n) => `a${n}`);
    for (const name of first) flow = flow.add(name, 't');
    for (let n = 0; n < 316; n++) flow = flow.add(`b${n}`, 't', {}, { after: first });
    expect(() => flow.steps).toThrow('has 100,172 edges; the most is 100,000');
  });

  it.each([
    ['a taken name', () => workflow('w').add('a', 't').add('a', 't'), 'the name "a" is taken'],
    ['no steps', () => workflow('w').steps, 'workflow "w" has no steps; add one, and keep what add returns'],
    ['a blank name of a workflow', () => workflow(''), 'name of a workflow "" must be 1 to 100 letters'],
    ['a brace', () => workflow('w').add('a}', 't'), 'name of a step of workflow "w" "a}" must be 1 to 100 letters'],
    [
      'the separator',
      () => workflow('w').add('a/b', 't'),
      'name of a step of workflow "w" "a/b" must be 1 to 100 letters',
    ],
    ['a long name', () => workflow('w').add('x'.repeat(101), 't'), 'has 101 characters; the most is 100'],
    ['a name that is no text', () => workflow(7 as never), 'name of a workflow must be a string, not 7'],
    [
      'no task',
      () => workflow('w').add('a', undefined as never),
      'must be a task definition, a type name or a workflow',
    ],
    ['an unknown option', () => workflow('w').add('a', 't', 1, { afer: 'b' } as never), 'did you mean "after"?'],
    ['an option of the task', () => workflow('w').add('a', 't', 1, { queue: 'q' } as never), 'options: { queue: … }'],
    ['a policy', () => workflow('w').add('a', 't', 1, { onFailure: 'cancle' as never }), 'did you mean "cancel"?'],
    ['after', () => workflow('w').add('a', 't', 1, { after: [7] as never }), 'must be the name of a step or an array'],
    ['optional', () => workflow('w').add('a', 't', 1, { optional: 'yes' as never }), 'must be true or false'],
    [
      'an id',
      () => workflow('w').add('a', 't', 1, { options: { taskId: 'x' } as never }),
      'cannot have the option taskId',
    ],
    [
      'a group',
      () => workflow('w').add('a', 't', 1, { options: { group: 'x' } as never }),
      'cannot have the option group',
    ],
    [
      'after among the options of the task',
      () => workflow('w').add('a', 't', 1, { options: { after: 'b' } as never }),
      'step "a" of workflow "w" cannot have the option after: write it beside options, as { after: …, options: { … } }',
    ],
    [
      'waitAtMost',
      () => workflow('w').add('a', 't', 1, { options: { waitAtMost: '1d' } as never }),
      'cannot have the option waitAtMost: give the workflow a timeout',
    ],
    ['a retention', () => workflow('w', { retention: '4s' }), 'retention of workflow "w" must be at least 5 seconds'],
    ['an option of the workflow', () => workflow('w', { quue: 'a' } as never), 'did you mean "queue"?'],
    ['a queue', () => workflow('w', { queue: 'a{b' }), 'queue of workflow "w" "a{b" has a brace'],
  ])('refuses %s', (_, make, message) => {
    expect(make).toThrow(InvalidWorkflowError);
    expect(make).toThrow(message);
  });

  it('refuses a wrong option of a task', () => {
    expect(() => workflow('w').add('a', 't', 1, { options: { maxRetry: 'x' as never } })).toThrow(InvalidTaskError);
  });

  it('refuses an unknown step, and names the nearest', () => {
    const flow: Workflow = workflow('w').add('receipt', 't');
    expect(() => flow.add('b', 't', 1, { after: 'reciept' }).steps).toThrow(
      'step "b" of workflow "w" is after an unknown step "reciept"; did you mean "receipt"?',
    );
    expect(() => flow.add('b', 't', 1, { after: 'a' }).steps).toThrow('"a"; known are receipt');
    const alone: Workflow = workflow('w').add('b', 't', 1, { after: 'a' as never });
    expect(() => alone.steps).toThrow('step "b" of workflow "w" is after an unknown step "a"; it is the only step');
  });

  it('names the steps of a cycle', () => {
    const flow: Workflow = workflow('w').add('start', 't');
    const cycle = flow
      .add('a', 't', 1, { after: ['start', 'c'] })
      .add('b', 't', 1, { after: 'a' })
      .add('c', 't', 1, { after: 'b' })
      .add('end', 't', 1, { after: 'c' });
    expect(() => cycle.steps).toThrow('workflow "w" has a cycle, so that none of it could run: a → b → c → a');
    expect(() => flow.add('self', 't', 1, { after: 'self' }).steps).toThrow('self → self');
  });
});

describe('a workflow as a step', () => {
  const inner = workflow('inner').add('x', Pay, order).add('y', Receipt, order, { after: 'x' }).add('z', Warm);

  it('is placed with its name before its steps', () => {
    const flow = workflow('outer')
      .add('first', 't')
      .add('mid', inner, { after: 'first', onFailure: 'run' })
      .add('last', Close, order, { after: 'mid' });
    expect(edgesOf(flow)).toEqual({
      first: [],
      'mid/x': ['first'],
      'mid/y': ['mid/x'],
      'mid/z': ['first'],
      last: ['mid/y', 'mid/z'],
    });
    expect(flow.steps.map(({ onFailure }) => onFailure)).toEqual(['cancel', 'run', 'cancel', 'run', 'cancel']);
  });

  it('may hold workflows itself, which can be waited for', () => {
    const outer = workflow('outer').add('in', inner);
    const flow = workflow('top')
      .add('out', outer)
      .add('end', 't', 1, { after: ['out/in', 'out/in/x'] });
    expect(edgesOf(flow).end).toEqual(['out/in/y', 'out/in/z', 'out/in/x']);
  });

  it('is refused with what only a task has, with a taken name, and when names get too long', () => {
    const add = (options: object) => workflow('w').add('in', inner, options as never);
    expect(() => add({ optional: true })).toThrow('unknown option of step "in" of workflow "w": "optional"');
    expect(() => workflow('w').add('in', inner).add('in', 't')).toThrow('the name "in" is taken');
    const long = workflow('w').add('y'.repeat(60), inner);
    expect(() => workflow('w').add('x'.repeat(60), long)).toThrow('with the names of the workflows around it');
    expect(() => workflow('w').add('in', workflow('empty'))).toThrow('workflow "empty" has no steps');
  });
});

describe('chain and parallel', () => {
  const flow = chain(
    'order:fulfil',
    step('pay', Pay, order),
    parallel('papers', step('receipt', Receipt, order), step('warm', Warm)),
    step('close', Close, order, { onFailure: 'run' }),
  );

  it('make the common shapes', () => {
    expect(edgesOf(flow)).toEqual({
      pay: [],
      'papers/receipt': ['pay'],
      'papers/warm': ['pay'],
      close: ['papers/receipt', 'papers/warm'],
    });
    expect(flow.steps.at(-1)!.onFailure).toBe('run');
    expect(flow.name).toBe('order:fulfil');
  });

  it('go on with add', () => {
    const more = flow.add('bye', 'mail', {}, { after: ['close', 'papers'] });
    expect(more.steps.at(-1)!.after).toEqual(['close', 'papers/receipt', 'papers/warm']);
  });

  it('take a list, whose names and results are known', () => {
    const pages = [1, 2, 3];
    const book = workflow('book')
      .add('pay', Pay, order)
      .add('pages', parallel('pages', ...pages.map((page) => step(`page-${page}`, Receipt, order))), { after: 'pay' })
      .add('close', Close, order, { after: ['pages', 'pages/page-2'] });
    expect(edgesOf(book)).toEqual({
      pay: [],
      'pages/page-1': ['pay'],
      'pages/page-2': ['pay'],
      'pages/page-3': ['pay'],
      close: ['pages/page-1', 'pages/page-2', 'pages/page-3'],
    });
    expectTypeOf<StepsOf<typeof book>>().toEqualTypeOf<{
      pay: { captureId: string };
      [page: `pages/page-${number}`]: number;
      close: unknown;
    }>();
    const both = (['left', 'right'] as const).map((side) => step(side, Receipt, order));
    const sides = chain('c', parallel('sides', ...both));
    expectTypeOf<StepsOf<typeof sides>>().toEqualTypeOf<{ 'sides/left': number; 'sides/right': number }>();
    // @ts-expect-error a name that no page has
    void (() => book.add('late', Close, order, { after: 'pages/side-1' }));
  });

  it('of an empty list stand for what they wait for', () => {
    const none: ReturnType<typeof step>[] = [];
    const flow = workflow('w')
      .add('a', Pay, order)
      .add('b', Pay, order)
      .add('none', parallel('none', ...none), { after: ['a', 'b'] })
      .add('nested', chain('outer', parallel('inner', ...none), parallel('last', ...none)), { after: 'none' })
      .add('both', chain('both', parallel('first', ...none), step('x', 't'), parallel('last', ...none)), { after: 'a' })
      .add('c', 't', 1, { after: 'none' })
      .add('d', 't', 1, { after: ['nested/inner', 'nested/last'] })
      .add('e', 't', 1, { after: 'both' })
      .add('f', 't', 1, { after: 'both/first' })
      .add('free', parallel('free', ...none))
      .add('g', 't', 1, { after: 'free' });
    expect(edgesOf(flow)).toEqual({
      a: [],
      b: [],
      'both/x': ['a'],
      c: ['a', 'b'],
      d: ['a', 'b'],
      e: ['both/x'],
      f: ['a'],
      g: [],
    });
    expect(() => parallel('none', ...none).steps).toThrow('workflow "none" has no steps');
  });

  it('of an empty list that wait for themselves have a cycle', () => {
    const none = parallel('none');
    const flow: Workflow = workflow('w').add('a', 't');
    const cycle = flow.add('p', none, { after: 'q' }).add('q', none, { after: 'p' }).add('b', 't', 1, { after: 'p' });
    expect(() => cycle.steps).toThrow('workflow "w" has a cycle, so that none of it could run: p → q → p');
  });

  it('refuse what is no step, and a step that says what it is after', () => {
    expect(() => chain('w', 'a' as never)).toThrow('a part of workflow "w" must be a step(…) or a workflow');
    expect(() => chain('w', step('a', 't', 1, { after: 'b' } as never))).toThrow('cannot say what it is after');
  });
});

describe('the types', () => {
  const fulfil = workflow('order:fulfil').add('pay', Pay, order).add('receipt', Receipt, order, { after: 'pay' });
  const outer = workflow('outer').add('in', fulfil).add('raw', 'any:type', 1, { after: 'in' });

  it('know the result of each step', () => {
    expectTypeOf<StepsOf<typeof fulfil>>().toEqualTypeOf<{ pay: { captureId: string }; receipt: number }>();
    expectTypeOf<StepsOf<typeof outer>>().toEqualTypeOf<{
      'in/pay': { captureId: string };
      'in/receipt': number;
      raw: unknown;
    }>();
    const shape = chain('c', step('pay', Pay, order), parallel('p', step('warm', Warm), step('close', Close, order)));
    expectTypeOf<StepsOf<typeof shape>>().toEqualTypeOf<{
      pay: { captureId: string };
      'p/warm': boolean;
      'p/close': unknown;
    }>();
    expectTypeOf(shape.name).toEqualTypeOf<'c'>();
  });

  it('know what JSON makes of a result', () => {
    const Ship = defineTask<void, { at: Date; bytes?: number }>('ship');
    const shipped = chain('s', step('ship', Ship)).add('again', Ship);
    type Shipped = { at: string; bytes?: number };
    expectTypeOf<StepsOf<typeof shipped>>().toEqualTypeOf<{ ship: Shipped; again: Shipped }>();
    const read = (task: WorkflowContext) => task.result('ship', Ship);
    expectTypeOf(read).returns.resolves.toEqualTypeOf<Shipped>();
  });

  it('refuse unknown steps and wrong payloads', () => {
    void (() => {
      // @ts-expect-error a step that does not exist
      fulfil.add('close', Close, order, { after: 'nope' });
      // @ts-expect-error one of several does not exist
      fulfil.add('close', Close, order, { after: ['pay', 'nope'] });
      // @ts-expect-error a step cannot wait for itself
      fulfil.add('close', Close, order, { after: 'close' });
      // @ts-expect-error a payload of another type
      fulfil.add('close', Close, { id: 7 });
      fulfil.add(
        'close',
        Close,
        order,
        // @ts-expect-error here, and not at the definition, as with every mistake in a call with one
        { after: 'nope' },
      );
      fulfil.add(
        'close',
        Close,
        // @ts-expect-error the same for a payload
        { id: 7 },
      );
      step(
        'close',
        Close,
        // @ts-expect-error the same for a part of a shape
        { id: 7 },
      );
      // @ts-expect-error a missing payload
      fulfil.add('close', Close);
      // @ts-expect-error an option that a step cannot have
      fulfil.add('close', Close, order, { options: { taskId: 'x' } });
      // @ts-expect-error the steps of a workflow have its name before theirs
      outer.add('last', Warm, undefined, { after: 'pay' });
      // @ts-expect-error an option of tasks only
      outer.add('again', fulfil, { optional: true });
      // @ts-expect-error the shape says what it waits for
      step('a', Warm, undefined, { after: 'b' });
      outer.add('last', Warm, undefined, { after: ['in', 'in/pay', 'raw'] });
      outer.add('last', Warm);
    });
    let dynamic: Workflow = workflow('dynamic');
    dynamic = dynamic.add('a', Pay, order);
    dynamic = dynamic.add('b', Receipt, order, { after: 'a' });
    expect(dynamic.steps).toHaveLength(2);
  });
});
