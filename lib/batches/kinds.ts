import { InvalidTaskError } from '../errors.js';
import { refuseMarks } from '../enqueue/linked-task.js';
import type { Preparer } from '../enqueue/preparer.js';
import type { TaskKind } from '../enqueue/task-kinds.js';
import { MEMBER_OPTION_NAMES } from '../task/batch.js';
import type { TaskDefinition } from '../task/definition.js';
import { refuseCallLinks } from '../task/link-settings.js';
import { TASK_OPTION_NAMES, type TaskOptions } from '../task/options.js';
import { DEFAULT_SETTINGS, type TaskSettings } from '../task/settings.js';
import { rejectUnknownKeys, requireObject } from '../validation.js';
import { CALLBACK_OPTION_NAMES } from './options.js';

type OptionName = keyof TaskOptions;
/** Options that are settings under their own names. */
type Setting = Extract<OptionName, keyof TaskSettings>;

/** Which options the tasks of a batch may not have, and why. */
interface Rules {
  readonly known: readonly OptionName[];
  readonly reasons: Partial<Record<OptionName, string>>;
}

const ALONE = 'a task in a group does not run by itself, and its end would never be known';

const ALREADY = 'it is a part of the batch in any case, and must not stand for another task';

const MEMBERS: Rules = {
  known: MEMBER_OPTION_NAMES,
  reasons: {
    taskId: 'its id is its number in the batch',
    group: ALONE,
    once: ALREADY,
    debounce: ALREADY,
    throttle: ALREADY,
    latest: ALREADY,
    supersede: ALREADY,
  },
};

const ONCE = 'it is enqueued once anyway, and must not be refused for the lock of another task';
const AT_ITS_TIME = 'it starts when its time comes';
const NOT_BEFORE_THE_END = 'its time begins at the end of the batch, which is not known yet';

const CALLBACKS: Rules = {
  known: CALLBACK_OPTION_NAMES,
  reasons: {
    taskId: 'its id is made of that of the batch, so that it is enqueued once',
    group: ALONE,
    unique: ONCE,
    expiresIn: NOT_BEFORE_THE_END,
    onExpiry: NOT_BEFORE_THE_END,
    once: ONCE,
    debounce: ONCE,
    throttle: ONCE,
    latest: ONCE,
    supersede: ONCE,
    processAt: AT_ITS_TIME,
    processIn: AT_ITS_TIME,
  },
};

/** @throws InvalidTaskError */
export const kindOfMembers = (
  preparer: Preparer,
  task: string | TaskDefinition,
  options: TaskOptions | undefined,
): TaskKind => kindBy(MEMBERS, 'a member of a batch', preparer, task, options);

/** @param what the callback. @throws InvalidTaskError */
export const kindOfCallback = (
  what: string,
  preparer: Preparer,
  task: string | TaskDefinition,
  options: TaskOptions | undefined,
): TaskKind => kindBy(CALLBACKS, `${what} of a batch`, preparer, task, options);

function kindBy(
  rules: Rules,
  what: string,
  preparer: Preparer,
  task: string | TaskDefinition,
  options: TaskOptions | undefined,
): TaskKind {
  if (options !== undefined) checkOptions(rules, what, options);
  const kind = preparer.kindOf(task, options);
  refuseMarks(kind.settings.queue, `queue of ${what}`);
  const { repeat } = kind.settings;
  if (repeat && !rules.known.includes('unique')) throw cannotHave(what, repeat.option, kind, ONCE);
  const inherited = refused(rules).find((name) => kind.settings[name as Setting] !== DEFAULT_SETTINGS[name as Setting]);
  if (inherited === undefined) return kind;
  throw cannotHave(what, inherited, kind, rules.reasons[inherited]);
}

const cannotHave = (what: string, option: string, { type }: TaskKind, reason: string | undefined): InvalidTaskError =>
  new InvalidTaskError(
    `${what} cannot have "${option}", which the definition of "${type}" or the defaults of the client set: ` +
      `${reason}; use a definition without it`,
  );

function checkOptions(rules: Rules, what: string, options: TaskOptions): void {
  requireObject(options, `options of ${what}`, InvalidTaskError);
  const given = TASK_OPTION_NAMES.find((name) => options[name] !== undefined && !rules.known.includes(name));
  if (given !== undefined) {
    throw new InvalidTaskError(`${what} cannot have "${given}": ${rules.reasons[given]}; leave it out`);
  }
  refuseCallLinks(options, what);
  rejectUnknownKeys(options, TASK_OPTION_NAMES, `option of ${what}`, InvalidTaskError);
}

const refused = ({ known }: Rules): OptionName[] => TASK_OPTION_NAMES.filter((name) => !known.includes(name));
