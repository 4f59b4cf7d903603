import type { Command, Option } from 'commander';

export interface Candidate {
  readonly text: string;
  readonly meaning: string;
}

/** What Redis knows the names of: arguments are called so. */
export type NameKind = 'queue' | 'entry' | 'run' | 'batch';
const NAME_KINDS: readonly (string | undefined)[] = ['queue', 'entry', 'run', 'batch'] satisfies NameKind[];

/** Returns the names that Redis knows; none while it is unavailable. */
export type Names = (kind: NameKind, flags: Readonly<Record<string, string | true>>) => Promise<readonly string[]>;

/** Only names of these characters are offered: others would need the quoting of each shell. */
const NEEDS_NO_QUOTES = /^[\p{L}\p{N}_.:@%+,/=-]+$/u;

/** What is known of a line up to a word: its command, its global flags, and the option whose value comes next. */
interface ParsedLine {
  command: Command;
  readonly flags: Record<string, string | true>;
  valueOption: Option | undefined;
}

/**
 * Returns the words that may come next on a command line, from the tree of commands.
 *
 * @param words after the name of the program; the last is the one to complete, and may be empty
 */
export async function complete(root: Command, words: readonly string[], names: Names): Promise<Candidate[]> {
  const line: ParsedLine = { command: root, flags: {}, valueOption: undefined };
  for (const word of words.slice(0, -1)) read(line, word);
  const current = words.at(-1) ?? '';
  const { command, valueOption } = line;
  const [, flag, value] = /^(--\w[\w-]*=)(.*)$/s.exec(current) ?? [];
  const option = valueOption ?? (flag === undefined ? undefined : findOption(command, flag.slice(0, -1)));
  const all = option ? await valuesOf(option, line, names) : await wordsOf(line, current, names);
  const prefix = valueOption || !option ? '' : flag!;
  const wanted = prefix === '' ? current : value!;
  return all.filter(({ text }) => text.startsWith(wanted)).map((one) => ({ ...one, text: prefix + one.text }));
}

function read(line: ParsedLine, word: string): void {
  const { command, valueOption, flags } = line;
  if (valueOption) {
    flags[valueOption.attributeName()] = word;
    line.valueOption = undefined;
  } else if (word.startsWith('-')) {
    readFlag(line, word);
  } else {
    line.command = command.commands.find((one) => [one.name(), ...one.aliases()].includes(word)) ?? command;
  }
}

function readFlag(line: ParsedLine, word: string): void {
  const [, name = word, value] = /^(--[^=]+)=(.*)$/s.exec(word) ?? [];
  const option = findOption(line.command, name);
  if (!option) return;
  if (option.required && value === undefined) line.valueOption = option;
  else line.flags[option.attributeName()] = value ?? true;
}

const findOption = (command: Command, name: string): Option | undefined =>
  command.options.find(({ short, long }) => name === short || name === long);

async function wordsOf({ command, flags }: ParsedLine, current: string, names: Names): Promise<Candidate[]> {
  if (current.startsWith('-')) return flagsOf(command);
  if (command.commands.length > 0) {
    const shown = command.createHelp().visibleCommands(command);
    return shown.map((one) => ({ text: one.name(), meaning: one.summary() || one.description() }));
  }
  const [argument] = command.registeredArguments;
  if (argument?.argChoices) return argument.argChoices.map((text) => ({ text, meaning: '' }));
  const kind = argument?.name();
  return NAME_KINDS.includes(kind) ? asCandidates(await names(kind as NameKind, flags), kind!) : [];
}

function flagsOf(command: Command): Candidate[] {
  const help = command.createHelp();
  const shown = [...help.visibleOptions(command), ...help.visibleGlobalOptions(command)];
  return shown.map(({ long, short, description }) => ({ text: long ?? short!, meaning: description }));
}

async function valuesOf(option: Option, { flags }: ParsedLine, names: Names): Promise<Candidate[]> {
  if (option.argChoices) return option.argChoices.map((text) => ({ text, meaning: '' }));
  return option.long === '--queue' ? asCandidates(await names('queue', flags), 'queue') : [];
}

const asCandidates = (names: readonly string[], meaning: string): Candidate[] =>
  [...new Set(names)]
    .filter((text) => NEEDS_NO_QUOTES.test(text))
    .sort()
    .map((text) => ({ text, meaning }));
