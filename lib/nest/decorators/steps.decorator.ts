import { PARAM_TYPE } from '../names/nest.constants.js';
import { handlerParameter } from './handler-parameter.js';

/** Injects the steps of the running task: what they do is done once, however often the handler is called. See TaskSteps. */
export const Steps = (): ParameterDecorator => handlerParameter('Steps', PARAM_TYPE.steps, undefined, []);
