/*
 * Writes docs/options.md: every option with its default, from the docstrings of the types. test/unit/generated-pages.spec.ts fails when the
 * page is out of date.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { formatted } from './formatted.mjs';
import ts from 'typescript';

const root = join(import.meta.dirname, '..');
export const OPTIONS_PAGE = join(root, 'docs/options.md');

/** Parts of the page: their types, each with its file below lib/ and what is said of it. `without` leaves out what another part has. */
const PARTS = [
  {
    title: 'The module',
    says: '`AsynqModule.forRoot(options)`, and what the factory of `forRootAsync` returns.',
    more: 'configuration.md#the-module',
    type: ['nest/connection/asynq-module.options.ts', 'AsynqModuleOptions'],
  },
  {
    title: 'Beside the factory',
    says: 'Also options of `forRoot`. In `forRootAsync` they stand beside `useFactory`.',
    more: 'configuration.md#several-connections',
    type: ['nest/connection/asynq-module.options.ts', 'AsynqModuleExtras'],
  },
  {
    title: 'A queue, where tasks are put into it',
    says: '`queues: { mail: { … } }` of the module.',
    more: 'at-the-door.md#queues-that-must-not-grow-for-ever',
    type: ['task/queue-settings.ts', 'QueueSettings'],
  },
  {
    title: 'The archive of a queue',
    says: '`archive: { … }` of such a queue.',
    more: 'at-the-door.md#how-much-an-archive-keeps',
    type: ['task/queue-settings.ts', 'ArchiveSettings'],
  },
  {
    title: 'The server',
    says: '`server: { … }` of the module.',
    more: 'configuration.md#the-server',
    type: ['server/options.ts', 'ServerOptions'],
  },
  {
    title: 'A queue, where its tasks are handled',
    says: '`server: { queues: { mail: { … } } }` of the module.',
    more: 'limits.md#limits-of-a-queue',
    type: ['server/fetching/queue-options.ts', 'QueueOptions'],
  },
  {
    title: 'Threads',
    says: '`server: { threads: { … } }` of the module.',
    more: 'heavy-work.md#handlers-in-threads',
    type: ['threads/options.ts', 'ThreadOptions'],
  },
  {
    title: 'A task',
    says: 'Of `defineTask`, of a call (`enqueue`, `call`, `with(…)`), and of `defaults` of the module.',
    more: 'handlers.md#define-a-task',
    type: ['task/options.ts', 'TaskOptions'],
  },
  {
    title: 'unique',
    says: '`unique: { … }` of a task.',
    more: 'uniqueness.md#the-options',
    type: ['task/repeats.ts', 'UniqueOptions'],
  },
  {
    title: 'debounce',
    says: '`debounce: { … }` of a task.',
    more: 'uniqueness.md#the-options',
    type: ['task/repeats.ts', 'DebounceOptions'],
  },
  {
    title: 'acknowledge',
    says: '`acknowledge: { … }` of the module, a definition or a call.',
    more: 'at-the-door.md#tasks-that-a-failover-must-not-lose',
    type: ['task/acknowledge.ts', 'AcknowledgeOptions'],
  },
  {
    title: 'A definition',
    says: 'Of `defineTask`, besides those of a task.',
    more: 'dependencies.md',
    type: ['task/definition.ts', 'DefinitionOptions'],
    without: ['task/options.ts', 'TaskOptions'],
  },
  {
    title: 'fairness',
    says: '`fairness: { … }` of a definition.',
    more: 'fairness.md',
    type: ['task/fairness.ts', 'FairnessOptions'],
  },
  {
    title: 'A handler',
    says: 'Of `@TaskHandler(task, options)`.',
    more: 'configuration.md#the-server',
    type: ['nest/decorators/task-handler.decorator.ts', 'TaskHandlerOptions'],
  },
  {
    title: 'A batch handler',
    says: '`batch: { … }` of `@TaskHandler`.',
    more: 'batch-handlers.md',
    type: ['nest/decorators/batch-option.ts', 'BatchHandlerOptions'],
  },
  {
    title: 'A schedule',
    says: 'Of `@PeriodicTask` and `AsynqScheduler.register`, besides those of a task; the decorator also takes those of a handler.',
    more: 'periodic-tasks.md',
    type: ['scheduler/options.ts', 'PlanOptions'],
  },
  {
    title: 'An aggregator',
    says: 'Of `@TaskAggregator(options)`.',
    more: 'groups.md',
    type: ['nest/decorators/task-aggregator.decorator.ts', 'TaskAggregatorOptions'],
  },
  {
    title: 'A step of a workflow',
    says: 'Of `add(name, task, payload, options)`.',
    more: 'workflows.md',
    type: ['workflows/types.ts', 'StepOptions'],
  },
  {
    title: 'A run of a workflow',
    says: 'Of `asynq.start(workflow, options)`.',
    more: 'workflows.md',
    type: ['workflows/types.ts', 'StartOptions'],
  },
  {
    title: 'A batch',
    says: 'Of `asynq.openBatch(options)`.',
    more: 'batches.md',
    type: ['batches/options.ts', 'BatchOptions'],
  },
  {
    title: 'A step of a handler',
    says: 'Of `steps.run(name, work, options)`.',
    more: 'durable-handlers.md',
    type: ['task/steps.ts', 'StepRunOptions'],
  },
  {
    title: 'Versions of a handler with steps',
    says: '`steps: { … }` of a definition or a handler.',
    more: 'durable-handlers.md',
    type: ['task/steps-options.ts', 'StepsOptions'],
  },
  {
    title: 'The outbox',
    says: 'Of `AsynqOutboxModule`.',
    more: 'transactions.md',
    type: ['outbox/options.ts', 'AsynqOutboxOptions'],
  },
  {
    title: 'The outbox, beside the factory',
    says: 'Also an option of `forRoot`. In `forRootAsync` it stands beside `useFactory`.',
    more: 'transactions.md#an-outbox',
    type: ['outbox/outbox.module.definition.ts', 'AsynqOutboxExtras'],
  },
  {
    title: 'Metrics',
    says: 'Of `AsynqMetricsModule`.',
    more: 'metrics.md',
    type: ['metrics/metrics.options.ts', 'AsynqMetricsOptions'],
  },
  {
    title: 'The console',
    says: 'Of `AsynqDashboardModule`.',
    more: 'dashboard.md',
    type: ['dashboard/dashboard.options.ts', 'AsynqDashboardOptions'],
  },
  {
    title: 'Probes and draining',
    says: 'Of `AsynqOperationsModule`.',
    more: 'operations.md',
    type: ['nest/operations/operations.options.ts', 'AsynqOperationsOptions'],
  },
];

const OPTIONS = { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.NodeNext, strict: true, types: [] };

/** A program of lib/ alone: the types of other packages are not needed, and take most of the time. */
function compile(files) {
  const host = ts.createCompilerHost(OPTIONS);
  host.resolveModuleNameLiterals = (literals, from) =>
    literals.map(({ text }) => ({
      resolvedModule: text.startsWith('.')
        ? { resolvedFileName: resolve(from, '..', text.replace(/\.js$/, '.ts')), extension: '.ts' }
        : undefined,
    }));
  return ts.createProgram(files, OPTIONS, host);
}

const oneLine = (text) => text.replaceAll(/\s+/g, ' ').trim();
const cell = (text) => oneLine(text).replaceAll('|', String.raw`\|`);
const code = (text) => `\`${cell(text)}\``;
/** Outside of code, what Markdown or a page of HTML would read as its own. */
const prose = (text) =>
  cell(text)
    .split(/(`[^`]*`)/)
    .map((part, index) => (index % 2 ? part : part.replaceAll('<', '&lt;').replaceAll('*', String.raw`\*`)))
    .join('');

/** `Default: none.` and `Default 1 s.` begin a sentence of the docstring; that one is the default, the others are the meaning. */
const DEFAULT = /(?:^|(?<=[.;:)] ))Default(?: \([^)]+\))?:? (.+?)(?:\.(?= |$)|$)/;

function rowOf(symbol, checker, missing) {
  const declaration = symbol.declarations[0];
  const documentation = oneLine(ts.displayPartsToString(symbol.getDocumentationComment(checker)));
  const says = documentation.replaceAll(/\{@link[\s*]+([\w.]+)[\s*]*\}/g, '`$1`');
  const given = DEFAULT.exec(says)?.[1];
  const meaning = says.replace(DEFAULT, '').trim();
  const needed = !(symbol.flags & ts.SymbolFlags.Optional);
  if (given === undefined && !needed) missing.push(`${symbol.parent?.name ?? ''}.${symbol.name}`);
  const type = declaration.type?.getText() ?? checker.typeToString(checker.getTypeOfSymbol(symbol));
  const standard = given ?? (needed ? 'required' : '');
  return `| \`${symbol.name}\` | ${code(type)} | ${prose(standard)} | ${prose(meaning)} |`;
}

/** The text of the page. */
export async function optionsPage() {
  const fileOf = ([file]) => join(root, 'lib', file);
  const wanted = PARTS.flatMap(({ type, without }) => [type, ...(without ? [without] : [])]);
  const program = compile(wanted.map(fileOf));
  const checker = program.getTypeChecker();
  const propertiesOf = (type) => {
    const source = program.getSourceFile(fileOf(type));
    const declaration = source.statements.find((statement) => statement.name?.text === type[1]);
    if (declaration === undefined) throw new Error(`${type[0]} has no ${type[1]}`);
    return checker.getPropertiesOfType(checker.getTypeAtLocation(declaration.name));
  };
  const missing = []; // options whose docstring does not say what is the case without them
  const sections = PARTS.map(({ title, says, more, type, without }) => {
    const others = new Set(without ? propertiesOf(without).map(({ name }) => name) : []);
    const rows = propertiesOf(type).filter(({ name }) => !others.has(name));
    if (rows.length === 0) throw new Error(`${type[1]} has no options`);
    return [
      `## ${title}\n\n${says} [More](${more}).\n`,
      '| option | type | default | meaning |\n| --- | --- | --- | --- |',
      ...rows.map((symbol) => rowOf(symbol, checker, missing)),
    ].join('\n');
  });
  if (missing.length > 0) throw new Error(`no default in the docstring of ${missing.join(', ')}`);
  const intro = `# Every option

<!-- Made from the types by \`node scripts/options-page.mjs\`: change the docstring of an option, and not this file. -->

Every option with its type and its default. A \`Duration\` is a number of milliseconds, or a text such as \`'90s'\` or \`'1h30m'\`.
[Tasks and handlers](handlers.md) and [configuration](configuration.md) explain those that most applications use.`;
  const text = `${[intro, ...sections].join('\n\n')}\n`;
  return formatted(OPTIONS_PAGE, text);
}

if (process.argv[1] === import.meta.filename) {
  const text = await optionsPage();
  const before = await readFile(OPTIONS_PAGE, 'utf8').catch(() => '');
  if (text !== before) await writeFile(OPTIONS_PAGE, text);
}
