import { repeat, take } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { MemoryBroker } from '../../lib/broker/memory/memory-broker.js';
import { ManualClock } from '../../lib/clock.js';
import { AsynqEvents } from '../../lib/events/events.js';
import { AsynqTaskEvents } from '../../lib/nest/events/asynq-task-events.js';

const task = { id: 'a', type: 'mail', queue: 'default' };
const finished = { outcome: 'done', task, retried: 0, maxRetry: 0, duration: 1 } as const;

describe('the events of a server', () => {
  it('go to the listeners at the time of the event', () => {
    const events = new AsynqEvents();
    const heard: string[] = [];
    const ends: (() => void)[] = [];
    const listen = (name: string, then = (): void => {}): void =>
      void ends.push(events.on('taskFinished', () => (heard.push(name), then())));
    listen('first', () => {
      ends[1]!();
      listen('later');
    });
    listen('ended');
    events.emit('taskFinished', finished);
    expect(heard).toEqual(['first']);
    ends[0]!();
    events.emit('taskFinished', finished);
    expect(heard).toEqual(['first', 'later']);
  });

  it('go once to an observable that subscribes repeatedly', () => {
    const events = new AsynqEvents();
    events.on('taskFinished', () => {}); // the metrics, say
    const tasks = new AsynqTaskEvents(events, 'default', new MemoryBroker(new ManualClock()));
    let heard = 0;
    tasks
      .observe('finished')
      .pipe(take(1), repeat(100))
      .subscribe(() => heard++);
    for (const count of [1, 2]) {
      events.emit('taskFinished', finished);
      expect(heard).toBe(count);
    }
  });

  it('end each subscription alone, and have no listener after the last', () => {
    const events = new AsynqEvents();
    let heard = 0;
    const listener = (): void => void heard++;
    const [one, other] = [events.on('taskFinished', listener), events.on('taskFinished', listener)];
    one();
    one();
    events.emit('taskFinished', finished);
    expect(heard).toBe(1);
    other();
    expect(events.wants('taskFinished')).toBe(false);
  });

  it('are wanted without trouble only while a listener needs all', () => {
    const events = new AsynqEvents();
    const ends = [events.on('taskFinished', () => {}, 'troubles')];
    expect(events.wants('taskFinished')).toBe(true);
    expect(events.wants('taskFinished', false)).toBe(false);
    ends.push(events.on('taskFinished', () => {}));
    expect(events.wants('taskFinished', false)).toBe(true);
    ends.forEach((end) => (end(), end()));
    ends.push(events.on('taskFinished', () => {}, 'troubles'));
    expect(events.wants('taskFinished', false)).toBe(false);
    events.on('taskFinished', () => {});
    expect(events.wants('taskFinished', false)).toBe(true);
  });
});
