/** The header of a task that says which version of its payload it carries. Without it the version is 1. */
export const PAYLOAD_VERSION_HEADER = 'asynq-payload-version';

/** The waitlist of tasks whose payload is newer than a handler. No scope of a limit is named like this by accident. */
const NEWER = '~newer:';

export const newerWaitlist = (type: string): string => NEWER + type;
export const isNewerWaitlist = (waitlist: string): boolean => waitlist.startsWith(NEWER);

/** The version of a payload, from 1 on; `NaN` when the header is no such number. */
export function payloadVersion(headers: Readonly<Record<string, string>> | undefined): number {
  const text = headers?.[PAYLOAD_VERSION_HEADER];
  if (text === undefined) return 1;
  return /^[1-9]\d{0,14}$/.test(text) ? Number(text) : NaN;
}
