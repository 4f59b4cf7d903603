import { PARAM_TYPE } from '../names/nest.constants.js';
import { handlerParameter } from './handler-parameter.js';

/** Injects the TaskContext of the running task: id, headers, deadline, abort signal, `writeResult`. */
export const TaskCtx = (): ParameterDecorator => handlerParameter('TaskCtx', PARAM_TYPE.task, undefined, []);
