import { Inject } from '@nestjs/common';
import { getAsynqClientToken } from './nest.tokens.js';

/** Injects the AsynqClient of a named connection; without a name, like injecting the class AsynqClient. */
export const InjectAsynqClient = (name?: string): PropertyDecorator & ParameterDecorator =>
  Inject(getAsynqClientToken(name));
