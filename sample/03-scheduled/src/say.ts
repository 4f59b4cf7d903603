const start = Date.now();

/** Prints a line after the seconds since the start. */
export function say(line: string): void {
  console.log(`${((Date.now() - start) / 1000).toFixed(1).padStart(5)} s  ${line}`);
}
