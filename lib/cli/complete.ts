import type { Command, Option } from 'commander';

export interface Candidate {
  readonly text: string;
  readonly meaning: string;
}

/** What Redis has to say where a name is wanted; nothing when it is away. */
export type Names = (
  kind: 'queue' | 'entry',
  flags: Readonly<Record<string, string | true>>,
) => Promise<readonly string[]>;

/** Names are put on a command line: others than these would have to be quoted for every shell. */
const NEEDS_NO_QUOTES = /^[\p{L}\p{N}_.:@%+,/=-]+$/u;

/** Where a line stands: the command it has got to, the global flags on it, and the option whose value comes next. */
interface Standing {
  command: Command;
  readonly flags: Record<string, string | true>;
  awaited: Option | undefined;
}

/**
 * What may come next on a command line, by the tree of commands.
 *
 * @param words after the name of the program; the last is the one to complete, and may be empty
 */
export async function complete(root: Command, words: readonly string[], names: Names): Promise<Candidate[]> {
  const standing: Standing = { command: root, flags: {}, awaited: undefined };
  for (const word of words.slice(0, -1)) read(standing, word);
  const current = words.at(-1) ?? '';
  const { command, awaited } = standing;
  const [, flag, value] = /^(--\w[\w-]*=)(.*)$/s.exec(current) ?? [];
  const option = awaited ?? (flag === undefined ? undefined : findOption(command, flag.slice(0, -1)));
  const all = option ? await valuesOf(option, standing, names) : await wordsOf(standing, current, names);
  const prefix = awaited || !option ? '' : flag!;
  const wanted = prefix === '' ? current : value!;
  return all.filter(({ text }) => text.startsWith(wanted)).map((one) => ({ ...one, text: prefix + one.text }));
}

function read(standing: Standing, word: string): void {
  const { command, awaited, flags } = standing;
  if (awaited) {
    flags[awaited.attributeName()] = word;
    standing.awaited = undefined;
  } else if (word.startsWith('-')) {
    readFlag(standing, word);
  } else {
    standing.command = command.commands.find((one) => [one.name(), ...one.aliases()].includes(word)) ?? command;
  }
}

function readFlag(standing: Standing, word: string): void {
  const [, name = word, value] = /^(--[^=]+)=(.*)$/s.exec(word) ?? [];
  const option = findOption(standing.command, name);
  if (!option) return;
  if (option.required && value === undefined) standing.awaited = option;
  else standing.flags[option.attributeName()] = value ?? true;
}

const findOption = (command: Command, name: string): Option | undefined =>
  command.options.find(({ short, long }) => name === short || name === long);

async function wordsOf({ command, flags }: Standing, current: string, names: Names): Promise<Candidate[]> {
  if (current.startsWith('-')) return flagsOf(command);
  if (command.commands.length > 0) {
    const shown = command.createHelp().visibleCommands(command);
    return shown.map((one) => ({ text: one.name(), meaning: one.summary() || one.description() }));
  }
  const [argument] = command.registeredArguments;
  if (argument?.argChoices) return argument.argChoices.map((text) => ({ text, meaning: '' }));
  const kind = argument?.name();
  return kind === 'queue' || kind === 'entry' ? asCandidates(await names(kind, flags), kind) : [];
}

function flagsOf(command: Command): Candidate[] {
  const help = command.createHelp();
  const shown = [...help.visibleOptions(command), ...help.visibleGlobalOptions(command)];
  return shown.map(({ long, short, description }) => ({ text: long ?? short!, meaning: description }));
}

async function valuesOf(option: Option, { flags }: Standing, names: Names): Promise<Candidate[]> {
  if (option.argChoices) return option.argChoices.map((text) => ({ text, meaning: '' }));
  return option.long === '--queue' ? asCandidates(await names('queue', flags), 'queue') : [];
}

const asCandidates = (names: readonly string[], meaning: string): Candidate[] =>
  [...new Set(names)]
    .filter((text) => NEEDS_NO_QUOTES.test(text))
    .sort()
    .map((text) => ({ text, meaning }));
