import { InvalidOptionError } from '../../errors.js';
import type { Redactor } from '../../redaction/redactor.js';
import type { Tracing } from '../tracing.js';
import { OpenTelemetryTracing } from './opentelemetry-tracing.js';

/**
 * Loads tracing by the OpenTelemetry API, if the application has it.
 *
 * @param required whether its absence is an error
 * @param onActive called once, when an SDK (or only a propagator) is registered
 * @param redactor hides errors in spans
 * @throws InvalidOptionError
 */
export async function loadOpenTelemetry(
  required: boolean,
  onActive: () => void,
  redactor?: Redactor,
): Promise<Tracing | undefined> {
  try {
    return new OpenTelemetryTracing(await import('@opentelemetry/api'), onActive, redactor);
  } catch (cause) {
    if (!required) return undefined;
    throw new InvalidOptionError(
      'AsynqModule option tracing is true, but @opentelemetry/api cannot be loaded; install it, or leave the option out',
      { cause },
    );
  }
}
