import { type Command, Option } from 'commander';
import type { FairKeyInfo, FairKeyListOptions } from '../../inspector/fair-keys.js';
import { formatDistance, formatDuration } from '../../words/when.js';
import type { CommandContext } from '../tree/command-context.js';
import { addCommand, type Invocation } from '../tree/tree.js';
import { jsonOption, positive } from '../tree/values.js';

interface KeysFlags extends Pick<FairKeyListOptions, 'search' | 'sort' | 'cursor'> {
  readonly held?: true;
  readonly size: number;
  readonly json?: boolean;
}

export function addQueueKeys(group: Command, invocation: Invocation): void {
  addCommand<KeysFlags>(group, invocation, {
    usage: 'keys <queue>',
    summary: 'list the keys of a fair queue: what waits and runs, their limits, and what holds them back',
    details: 'Without --sort, those with the most waiting tasks come first.',
    options: [
      new Option('--search <text>', 'only keys with this text in them'),
      new Option('--held', 'only keys that a limit of their own holds back'),
      new Option('--sort <order>', 'order of the keys; with a cursor that of the page before').choices([
        'waiting',
        'name',
      ]),
      new Option('--size <number>', 'keys per page, up to 1000').argParser(positive).default(30),
      new Option('--cursor <cursor>', 'continue after the page that printed it'),
      jsonOption(),
    ],
    examples: ['queue keys imports', 'queue keys imports --held', 'queue keys imports --search acme --json'],
    run: listKeys,
  });
}

async function listKeys(context: CommandContext<KeysFlags>): Promise<void> {
  const { json, ...options } = context.options;
  const queue = context.args[0]!;
  const { keys, cursor } = await (await context.inspector()).fairnessKeys(queue, options);
  if (json) return context.json({ keys: keys.map(asJson), cursor: cursor ?? null });
  if (keys.length > 0) context.table(columnsOf(context.now), keys);
  else context.note(cursor === undefined ? `No keys in queue "${queue}"` : 'No keys on this page');
  if (cursor !== undefined) context.note(`There is more: --cursor ${cursor}`);
}

const asJson = ({ key, waiting, running, weight, concurrency, rate, held }: FairKeyInfo) => ({
  key,
  waiting,
  running: running ?? null,
  weight,
  concurrency: concurrency ?? null,
  rate: rate ?? null,
  held: held ?? null,
});

const columnsOf = (now: number) => [
  { title: 'Key', cell: ({ key }: FairKeyInfo) => key || '(without a key)', shrinks: true },
  { title: 'Waiting', cell: ({ waiting }: FairKeyInfo) => waiting },
  { title: 'Running', cell: ({ running }: FairKeyInfo) => running ?? '?' },
  { title: 'Weight', cell: ({ weight }: FairKeyInfo) => weight },
  { title: 'Limits', cell: limitsText },
  { title: 'Held By', cell: (key: FairKeyInfo) => heldText(key, now) },
];

function limitsText({ concurrency, rate }: FairKeyInfo): string {
  const texts = [
    ...(concurrency === undefined ? [] : [`${concurrency} at a time`]),
    ...(rate ? [`${rate.max} per ${formatDuration(rate.per)}`] : []),
  ];
  return texts.join(', ');
}

/** The time of a key that waits for a slot is only that of the next look. */
function heldText({ held }: FairKeyInfo, now: number): string {
  if (!held) return '';
  const by = held.by.length > 0 ? held.by.join(', ') : 'nothing any more';
  return held.by.includes('concurrency') ? by : `${by}, ${formatDistance(held.until, now)}`;
}
