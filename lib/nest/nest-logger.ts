import { Logger } from '@nestjs/common';
import type { AsynqLogger } from '../logger.js';
import { DEFAULT_CONNECTION } from './names/nest.constants.js';

/** Nest's logger with the context `Asynq`, and the name of a named connection. */
export const nestLogger = (connection: string): AsynqLogger =>
  new Logger(connection === DEFAULT_CONNECTION ? 'Asynq' : `Asynq(${connection})`);
