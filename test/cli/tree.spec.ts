import type { Command } from 'commander';
import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { readableProgram, runInProcess } from '../support/command-line.js';

const root = readableProgram();

const find = (path: string): Command | undefined =>
  path.split(' ').reduce<Command | undefined>((at, name) => at?.commands.find((one) => one.name() === name), root);

const commands = (at: Command): Command[] => [at, ...at.commands.flatMap(commands)];
const pathOf = (command: Command): string =>
  command.parent ? `${pathOf(command.parent)} ${command.name()}`.trim() : '';

const GLOBAL = ['--config', '-u/--uri', '-n/--db', '-p/--password', '-U/--username', '--cluster', '--cluster_addrs'];
const GLOBAL_TLS = ['--tls', '--tls_server', '--insecure'];

/** Section 8.1 of the protocol: command, aliases, argument, flags (`*` is required). */
const ASYNQ: [path: string, aliases: string[], argument: string, flags: string[]][] = [
  ['stats', [], '', ['--json']],
  ['dash', [], '', ['--refresh=8000']],
  ['queue list', ['ls'], '', []],
  ['queue inspect', [], '<queue...>', []],
  ['queue history', [], '<queue...>', ['-x/--days=10']],
  ['queue pause', [], '<queue...>', []],
  ['queue resume', ['unpause'], '<queue...>', []],
  ['queue remove', ['rm', 'delete'], '<queue...>', ['-f/--force']],
  ['task list', ['ls'], '', ['*-q/--queue', '*-s/--state', '--page', '--size=30', '-g/--group']],
  ['task inspect', [], '', ['*-q/--queue', '*-i/--id']],
  ['task cancel', [], '<id...>', []],
  ['task archive', [], '', ['*-q/--queue', '*-i/--id']],
  ['task delete', ['remove', 'rm'], '', ['*-q/--queue', '*-i/--id']],
  ['task run', [], '', ['*-q/--queue', '*-i/--id']],
  [
    'task enqueue',
    [],
    '',
    [
      '*-t/--type_name',
      '*-l/--payload',
      '--retry',
      '--queue',
      '--id',
      '--timeout',
      '--deadline',
      '--unique',
      '--process_at',
      '--process_in',
      '--retention',
      '--group',
    ],
  ],
  ['task archiveall', [], '', ['*-q/--queue', '*-s/--state', '-g/--group']],
  ['task deleteall', [], '', ['*-q/--queue', '*-s/--state', '-g/--group']],
  ['task runall', [], '', ['*-q/--queue', '*-s/--state', '-g/--group']],
  ['server list', ['ls'], '', []],
  ['cron list', ['ls'], '', []],
  ['cron history', [], '<entry...>', ['--page', '--size=30']],
  ['cron pause', [], '<entry...>', []],
  ['cron resume', ['unpause'], '<entry...>', []],
  ['group list', ['ls'], '', ['*-q/--queue']],
  ['version', [], '', []],
];

/** asynq's, `waiting`, which is ours, and `completed`, which asynq's inspector runs and archives one at a time only. */
const STATES = {
  'task list': ['active', 'pending', 'scheduled', 'retry', 'archived', 'completed', 'aggregating', 'waiting', 'held'],
  'task archiveall': ['pending', 'scheduled', 'retry', 'aggregating', 'completed', 'waiting', 'held'],
  'task deleteall': ['pending', 'scheduled', 'retry', 'archived', 'completed', 'aggregating', 'waiting', 'held'],
  'task runall': ['scheduled', 'retry', 'archived', 'aggregating', 'completed', 'waiting', 'held'],
};

const flagsOf = (command: Command): string[] =>
  command.options.map(({ short, long, mandatory, defaultValue }) => {
    const value = typeof defaultValue === 'number' ? `=${defaultValue}` : '';
    return `${mandatory ? '*' : ''}${short ? `${short}/` : ''}${long}${value}`;
  });

describe('the tree of commands', () => {
  it.each(ASYNQ)("has asynq's %s", (path, aliases, argument, flags) => {
    const command = find(path)!;
    expect(command, path).toBeDefined();
    expect(command.aliases()).toEqual(aliases);
    expect(command.registeredArguments.map((one) => [one.variadic, one.required, one.name()])).toEqual(
      argument ? [[true, true, argument.slice(1, -4)]] : [],
    );
    expect(flagsOf(command)).toEqual(expect.arrayContaining([...flags, ...GLOBAL, ...GLOBAL_TLS]));
  });

  it.each(Object.entries(STATES))('accepts for %s the states that allow it', (path, states) => {
    const option = find(path)?.options.find(({ long }) => long === '--state');
    expect(option?.argChoices?.toSorted()).toEqual(states.toSorted());
  });

  it('prints JSON with every reading command', () => {
    const reading = /list|inspect|history|stats|version/;
    const leaves = commands(root).filter((command) => command.commands.length === 0 && reading.test(command.name()));
    expect(leaves.length).toBeGreaterThanOrEqual(11);
    for (const command of leaves) expect(flagsOf(command), pathOf(command)).toContain('--json');
  });

  it('describes every command with an example of itself and its required flags', async () => {
    for (const command of commands(root).slice(1)) {
      const { stdout, status } = await runInProcess([...pathOf(command).split(' '), '--help']);
      expect(status).toBe(0);
      expect(stdout, pathOf(command)).toContain(`Usage: nestjs-asynq ${pathOf(command)}`);
      expect(stdout).toContain('--cluster_addrs');
      if (command.commands.length > 0) continue;
      const examples = [...stdout.matchAll(/^ {2}\$ nestjs-asynq (.*)$/gm)].map(([, line]) => line!);
      expect(examples, pathOf(command)).not.toEqual([]);
      for (const line of examples) {
        expect(line).toMatch(new RegExp(`^${pathOf(command)}\\b`));
        for (const { mandatory, short, long } of command.options)
          if (mandatory) expect(line).toMatch(new RegExp(` (${short}|${long})\\b`));
      }
    }
  });

  it('shows every command in the help and in a table of the docs, but the one that scripts call', async () => {
    const docs = await readFile(new URL('../../docs/command-line.md', import.meta.url), 'utf8');
    const tables = /^## Commands\n(.*?)^## /ms.exec(docs)![1]!;
    for (const command of commands(root).slice(1)) {
      const parent = command.parent!;
      const shown = parent.createHelp().visibleCommands(parent).includes(command);
      expect([pathOf(command), shown]).toEqual([pathOf(command), command.name() !== '__complete']);
      if (!shown || command.commands.length > 0) continue;
      expect(
        [`\`${pathOf(command)}\``, `\`${command.name()}\``].some((name) => tables.includes(name)),
        pathOf(command),
      ).toBe(true);
    }
  });

  it('has no flag twice in one command', () => {
    for (const command of commands(root)) {
      const names = command.options.flatMap(({ short, long }) => [short, long]).filter(Boolean);
      expect(new Set(names).size, pathOf(command)).toBe(names.length);
    }
  });
});
