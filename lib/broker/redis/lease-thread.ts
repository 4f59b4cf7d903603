import type { MessagePort } from 'node:worker_threads';
import type { Address, PlainConnection } from './connection/plain-connection.js';
import type { LAYOUT } from './lease-board.js';

/** A queue that has leases, and which server has its keys. It is sent again when that changes. */
export interface ThreadQueue {
  readonly number: number;
  readonly leaseKey: string;
  readonly address: Address;
}

export interface ThreadData {
  readonly memory: SharedArrayBuffer;
  readonly layout: typeof LAYOUT;
  readonly connection: PlainConnection;
  /** The text of extend-leases.lua. */
  readonly script: string;
  readonly times: ThreadTimes;
}

export interface ThreadTimes {
  /** How often the thread looks. */
  readonly periodMs: number;
  /** After this time without a beat the event loop stands still. */
  readonly silentMs: number;
  /** Leases with less time left are extended. */
  readonly extendWhenLeftMs: number;
  readonly leaseSeconds: number;
}

/**
 * The program of the thread that keeps leases while the event loop stands still. It runs from its text, as the package may be bundled: it
 * uses nothing from outside it, and speaks Redis' protocol itself.
 */
export function leaseThread(port: MessagePort, { memory, layout, connection, script, times }: ThreadData): void {
  const net = process.getBuiltinModule('node:net');
  const tls = process.getBuiltinModule('node:tls');
  const words = new Int32Array(memory);
  const numbers = new Float64Array(memory);
  const bytes = Buffer.from(memory);
  const queues = new Map<number, ThreadQueue>();
  const links = new Map<string, Link>();
  /** Leases that are another server's by now, until the event loop goes on. */
  const lost = new Set<number>();
  const busy = new Set<number>();
  /** By queue: the score of a call without a reply. */
  const doubtful = new Map<number, number>();
  let beats = -1;
  let aliveAt = performance.now();

  interface Link {
    readonly call: (args: readonly string[]) => Promise<unknown>;
    readonly close: () => void;
  }

  port.on('message', (queue: ThreadQueue) => queues.set(queue.number, queue));
  process.getBuiltinModule('node:timers').setInterval(look, times.periodMs);

  function look(): void {
    const now = Atomics.load(words, layout.beats);
    if (now !== beats) {
      beats = now;
      aliveAt = performance.now();
      lost.clear();
      for (const link of links.values()) link.close();
      links.clear();
    } else if (performance.now() - aliveAt >= times.silentMs) extendDue();
  }

  function extendDue(): void {
    const now = new Date().getTime() + numbers[layout.ahead]!;
    const due = new Map<number, number[]>();
    for (let slot = 0; slot < words[layout.inUse]!; slot++) {
      const at = wordOf(slot);
      if (words[at + layout.state] !== 1 || lost.has(slot) || numberOf(slot, layout.deadline) <= now) continue;
      const end = Math.max(numberOf(slot, layout.confirmed), numberOf(slot, layout.expiresAt));
      if (end * 1000 - now >= times.extendWhenLeftMs) continue;
      const queue = words[at + layout.queue]!;
      due.set(queue, [...(due.get(queue) ?? []), slot]);
    }
    for (const [number, slots] of due) {
      const queue = queues.get(number);
      if (queue && !busy.has(number)) void extendQueue(queue, slots, now);
    }
  }

  async function extendQueue(queue: ThreadQueue, slots: readonly number[], now: number): Promise<void> {
    const { number } = queue;
    busy.add(number);
    // What got no reply is sent again as it was: few scores may be the last one.
    const before = doubtful.get(number) ?? 0;
    const end = before * 1000 - now > times.extendWhenLeftMs / 2 ? before : Math.floor(now / 1000) + times.leaseSeconds;
    doubtful.set(number, end);
    try {
      await extend(queue, slots, end);
      doubtful.delete(number);
    } catch (error) {
      const [, host, port] = /^MOVED \d+ (.+):(\d+)$/.exec((error as Error).message) ?? [];
      if (host !== undefined) queues.set(number, { ...queue, address: { host, port: Number(port) } });
    }
    busy.delete(number);
  }

  async function extend({ leaseKey, address }: ThreadQueue, slots: readonly number[], end: number): Promise<void> {
    const ids = slots.map(idOf);
    const fences = slots.flatMap((slot) => [scoresOf(slot, end).join(), '1']);
    Atomics.store(words, layout.news, 1); // from here on the event loop reckons with what is written below
    const args = ['EVAL', script, '1', leaseKey, String(end), String(ids.length), ...ids, ...fences];
    const missing = (await linkTo(address).call(args)) as number[];
    slots.forEach((slot, index) => {
      if (missing.includes(index + 1)) lost.add(slot);
      else if (ids[index] === idOf(slot)) numbers[place(slot) + layout.confirmed] = end;
    });
    Atomics.store(words, layout.news, 1);
  }

  /** All that may have been written last. Notes that `end` may be from here on, too. */
  function scoresOf(slot: number, end: number): number[] {
    const kept = [layout.expiresAt, layout.renewing, layout.confirmed, layout.sent, layout.sentBefore];
    const scores = kept.map((field) => numberOf(slot, field)).filter((score) => score > 0);
    if (numberOf(slot, layout.sent) !== end) {
      numbers[place(slot) + layout.sentBefore] = numberOf(slot, layout.sent);
      numbers[place(slot) + layout.sent] = end;
    }
    return [...new Set(scores)];
  }

  function wordOf(slot: number): number {
    return (layout.head + slot * layout.slot) / 4;
  }
  function place(slot: number): number {
    return (layout.head + slot * layout.slot) / 8;
  }
  function numberOf(slot: number, field: number): number {
    return numbers[place(slot) + field]!;
  }
  function idOf(slot: number): string {
    const start = layout.head + slot * layout.slot + layout.id;
    return bytes.toString('utf8', start, start + words[wordOf(slot) + layout.length]!);
  }

  function linkTo(address: Address): Link {
    const name = JSON.stringify(address);
    const known = links.get(name);
    if (known) return known;
    const link = connect(address, () => {
      if (links.get(name) === link) links.delete(name);
    });
    links.set(name, link);
    return link;
  }

  function nameOf(address: Address): object {
    return 'host' in address && net.isIP(address.host) === 0 ? { servername: address.host } : {};
  }

  function connect(address: Address, onEnd: () => void): Link {
    const socket = connection.tls
      ? tls.connect({ ...nameOf(address), ...address, ...connection.tls } as object)
      : net.connect(address);
    const waiting: { resolve: (reply: unknown) => void; reject: (error: Error) => void }[] = [];
    let received = Buffer.alloc(0);
    const fail = (error: Error): void => {
      socket.destroy();
      for (const { reject } of waiting.splice(0)) reject(error);
      onEnd();
    };
    socket.setNoDelay(true);
    socket.setTimeout(connection.connectTimeout, () => fail(new Error('timeout')));
    socket.on('error', fail);
    socket.on('close', () => fail(new Error('closed')));
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      for (;;) {
        const read = parse(received, 0);
        if (!read) return;
        received = received.subarray(read.end);
        const call = waiting.shift();
        if (read.value instanceof Error) call?.reject(read.value);
        else call?.resolve(read.value);
      }
    });
    const call = (args: readonly string[]): Promise<unknown> =>
      new Promise((resolve, reject) => {
        waiting.push({ resolve, reject });
        const parts = args.map((text) => `$${Buffer.byteLength(text)}\r\n${text}\r\n`);
        socket.write(`*${args.length}\r\n${parts.join('')}`);
      });
    const { username, password, db } = connection;
    const first = [
      ...(password ? [username ? ['AUTH', username, password] : ['AUTH', password]] : []),
      ['CLIENT', 'SETNAME', 'nestjs-asynq:leases'],
      ...(db > 0 ? [['SELECT', String(db)]] : []),
    ];
    for (const args of first) call(args).catch((error: Error) => args[0] !== 'CLIENT' && fail(error));
    return { call, close: () => fail(new Error('closed')) };
  }

  /** One reply, of the kinds that are used; `undefined` when it is not whole. */
  function parse(data: Buffer, start: number): { value: unknown; end: number } | undefined {
    const line = data.indexOf('\r\n', start);
    if (line < 0) return undefined;
    const text = data.toString('utf8', start + 1, line);
    let end = line + 2;
    switch (data[start]) {
      case 0x2d: // -
        return { value: new Error(text), end };
      case 0x3a: // :
        return { value: Number(text), end };
      case 0x24: // $
        if (text === '-1') return { value: null, end };
        if (data.length < end + Number(text) + 2) return undefined;
        return { value: data.toString('utf8', end, end + Number(text)), end: end + Number(text) + 2 };
      case 0x2a: {
        // *
        const values: unknown[] = [];
        for (let left = Number(text); left > 0; left--) {
          const item = parse(data, end);
          if (!item) return undefined;
          values.push(item.value);
          end = item.end;
        }
        return { value: values, end };
      }
      default:
        return { value: text, end };
    }
  }
}
