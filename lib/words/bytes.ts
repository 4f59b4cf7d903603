const UNITS = ['kB', 'MB', 'GB', 'TB', 'PB'] as const;

const three = (value: number): string =>
  value < 9.995 ? value.toFixed(2) : value < 99.95 ? value.toFixed(1) : value.toFixed(0);

/** `999 B`, `1.50 kB`, `12.3 MB`: a kB is 1,000 bytes, here and wherever this library names a size. */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  let value = bytes;
  let unit = -1;
  // Rounding must not lead to 1000 of a unit.
  while (value >= (unit < 0 ? 1000 : 999.5) && unit < UNITS.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${three(value)} ${UNITS[unit]}`;
}
