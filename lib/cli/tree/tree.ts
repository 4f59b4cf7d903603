import { type Argument, Command, Help, Option } from 'commander';
import { CommandContext, type GlobalFlags } from './command-context.js';
import { withSuggestion } from './known-names.js';
import { SETTINGS } from '../connection/settings.js';
import { columnsOf, hasColors, type Terminal } from '../output/terminal.js';
import { plain } from '../output/text.js';
import { PROGRAM } from '../output/words.js';

/** A command, without its parent. */
export interface CommandSpec<Options> {
  /** The name and its arguments: `inspect <queue...>`. */
  readonly usage: string;
  readonly aliases?: readonly string[];
  readonly summary: string;
  /** A further paragraph of its help. */
  readonly details?: string;
  readonly options?: readonly Option[];
  /** Arguments with choices, which `usage` cannot express. */
  readonly arguments?: readonly Argument[];
  /** Without the name of the program. */
  readonly examples: readonly string[];
  readonly hidden?: boolean;
  run(context: CommandContext<Options>): Promise<void> | void;
}

/** One run of the program. */
export interface Invocation {
  readonly terminal: Terminal;
  /** Some part was not done. */
  failed: boolean;
}

/** Global options besides the {@link SETTINGS}. */
const CONFIG = ['--config <file>', 'config file, YAML or JSON (default: $HOME/.asynq.yaml, .yml or .json)'] as const;

/** The root of the tree, with the options of every command. */
export function createRoot(terminal: Terminal): Command {
  const root = new Command(PROGRAM)
    .description('Shows and changes the queues and tasks of asynq and nestjs-asynq in Redis.')
    .usage('<command> <subcommand> [flags]')
    .version(`${PROGRAM} version ${terminal.version}`, '--version', 'print the version')
    .helpOption('-h, --help', 'show this help')
    .helpCommand(false)
    .enablePositionalOptions()
    .exitOverride()
    .showHelpAfterError(`(see the flags with --help)`)
    .configureHelp({
      showGlobalOptions: true,
      subcommandTerm: (command) => [command.name(), ...command.aliases()].join(', '),
      optionDescription: (option) => new Help().optionDescription(option) + (option.mandatory ? ' (required)' : ''),
    })
    .configureOutput({
      writeOut: (text) => void terminal.stdout.write(text),
      writeErr: (text) => void terminal.stderr.write(text.split('\n').map(plain).join('\n')), // it quotes the arguments
      getOutHelpWidth: () => columnsOf(terminal.stdout, 100),
      getErrHelpWidth: () => columnsOf(terminal.stderr, 100),
      getOutHasColors: () => hasColors(terminal.stdout, terminal),
      getErrHasColors: () => hasColors(terminal.stderr, terminal),
    });
  return addGlobalOptions(root);
}

/** A command that only contains others. */
export function addGroup(root: Command, name: string, summary: string): Command {
  const group = root.command(name).description(summary).usage('<subcommand> [flags]').helpCommand(false);
  return addGlobalOptions(group, true);
}

export function addCommand<Options>(parent: Command, invocation: Invocation, spec: CommandSpec<Options>): void {
  const command = parent
    .command(spec.usage, { hidden: spec.hidden ?? false })
    .aliases([...(spec.aliases ?? [])])
    .summary(spec.summary)
    .description(spec.details ? `${spec.summary}\n\n${spec.details}` : spec.summary)
    .addHelpText(
      'after',
      spec.examples.map((line, index) => `${index ? '' : '\nExamples:\n'}  $ ${PROGRAM} ${line}`).join('\n'),
    );
  for (const argument of spec.arguments ?? []) command.addArgument(argument);
  for (const option of spec.options ?? []) command.addOption(option);
  addGlobalOptions(command, true);
  command.action(async () => {
    const context = new CommandContext(
      invocation.terminal,
      command.args,
      command.opts() as Options,
      globalFlags(command),
    );
    try {
      await spec.run(context);
    } catch (error) {
      throw await withSuggestion(context, error);
    } finally {
      invocation.failed ||= context.failed;
      await context.close();
    }
  });
}

/** Adds the global options: they are accepted anywhere on the line, and shown once in the help. */
function addGlobalOptions(command: Command, hidden = false): Command {
  const all: (readonly [string, string])[] = [
    CONFIG,
    ...Object.values(SETTINGS).map(({ flags, help }) => [flags, help] as const),
  ];
  for (const [flags, help] of all) {
    command.addOption(new Option(flags, help).hideHelp(hidden));
    // Go's flags accept --tls=false.
    if (!flags.includes('<')) command.addOption(new Option(flags.replace('--', '--no-')).hideHelp());
  }
  return command;
}

/** The option closest to the end of the line wins. */
function globalFlags(command: Command): GlobalFlags {
  const levels: Command[] = [];
  for (let level: Command | null = command; level; level = level.parent) levels.unshift(level);
  return Object.assign({}, ...levels.map(given)) as GlobalFlags;
}

function given(level: Command): object {
  const names = ['config', ...Object.keys(SETTINGS)];
  return Object.fromEntries(
    names
      .filter((name) => level.getOptionValueSource(name) === 'cli')
      .map((name) => [name, level.getOptionValue(name)]),
  );
}
