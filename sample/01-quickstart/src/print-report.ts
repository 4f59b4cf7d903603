import { relative } from 'node:path';
import { resultOf, succeeded, type SurveyReport } from './survey.js';
import type { FileFacts } from './tasks.js';

const SHOWN = 15;

export function printReport({ files, steps, failures }: SurveyReport): void {
  printFiles(files);
  for (const step of steps.filter(succeeded)) {
    console.log(`${step.type}: ${resultOf<string>(step)} (attempt ${step.retried + 1})`);
  }
  for (const { type, payload, lastErr } of failures) console.error(`${type} ${payload} failed: ${lastErr}`);
}

function printFiles(files: readonly FileFacts[]): void {
  printRow('lines', 'words', 'bytes', 'sha256', 'file');
  for (const { path, lines, words, bytes, sha256 } of files.toSorted((a, b) => b.lines - a.lines).slice(0, SHOWN)) {
    printRow(lines, words, bytes, sha256, relative('', path));
  }
  if (files.length > SHOWN) console.log(`… and ${files.length - SHOWN} more`);
  const sum = (key: 'lines' | 'words' | 'bytes'): number => files.reduce((total, file) => total + file[key], 0);
  console.log(`${files.length} files: ${sum('lines')} lines, ${sum('words')} words, ${sum('bytes')} bytes`);
  for (const [pid, count] of countByProcess(files)) console.log(`process ${pid} measured ${count}`);
}

type Cell = number | string;

function printRow(lines: Cell, words: Cell, bytes: Cell, sha256: string, file: string): void {
  const numbers = [lines, words, bytes].map((cell) => String(cell).padStart(9));
  console.log(`${numbers.join('')}  ${sha256.slice(0, 12).padEnd(12)}  ${file}`);
}

function countByProcess(files: readonly FileFacts[]): Map<number, number> {
  const counts = new Map<number, number>();
  for (const { pid } of files) counts.set(pid, (counts.get(pid) ?? 0) + 1);
  return counts;
}
