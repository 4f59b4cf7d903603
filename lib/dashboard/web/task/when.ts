export interface When {
  how: 'now' | 'in' | 'at';
  amount: string;
  unit: string;
  /** In the format of `datetime-local`. */
  at: string;
}

export const NOW: When = { how: 'now', amount: '10', unit: '60', at: '' };

/** The fields of the request body; throws for an invalid time. */
export function toTime({ how, amount, unit, at }: When): { process_at?: string; process_in_seconds?: number } {
  if (how === 'now') return {};
  if (how === 'in') {
    const seconds = Number(amount) * Number(unit);
    if (amount.trim() === '' || !Number.isFinite(seconds) || seconds < 0)
      throw new Error(`“${amount}” is not a duration.`);
    return { process_in_seconds: seconds };
  }
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) throw new Error('Choose a date and a time.');
  return { process_at: time.toISOString() };
}
