import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { SingleBar } from 'cli-progress';
import { AppModule } from './app.module.js';
import { findFiles } from './find-files.js';
import { Survey, type SurveyReport } from './survey.js';
import type { FileFacts } from './tasks.js';

const SHOWN = 15;

/** `npm start [-- FILE|FOLDER…]` surveys files; `npm start -- --worker` (with REDIS_URL) only helps others do it. */
async function main(): Promise<void> {
  const names = process.argv.slice(2);
  const app = await NestFactory.createApplicationContext(AppModule, { logger: ['log', 'warn', 'error'] });
  app.enableShutdownHooks();
  if (names.includes('--worker')) return; // runs until Ctrl-C

  const paths = await findFiles(names.length > 0 ? names : ['.']);
  const bar = new SingleBar({ format: '{bar} {value}/{total} files', hideCursor: true, noTTYOutput: true });
  bar.start(paths.length, 0);
  const report = await app.get(Survey).run(paths, (done) => bar.update(done));
  bar.stop();
  print(report);
  await app.close();
  process.exitCode = report.failures.length > 0 ? 1 : 0;
}

function print({ files, failures, published }: SurveyReport): void {
  const largest = [...files].sort((a, b) => b.lines - a.lines);
  console.table(
    largest.slice(0, SHOWN).map(({ path, lines, words, bytes, sha256 }) => ({
      file: path,
      lines,
      words,
      bytes,
      sha256: sha256.slice(0, 12),
    })),
  );
  if (files.length > SHOWN) console.log(`… and ${files.length - SHOWN} more`);
  const total = (key: 'lines' | 'words' | 'bytes'): number =>
    files.reduce((sum, file: FileFacts) => sum + file[key], 0);
  console.log(`${files.length} files, ${total('lines')} lines, ${total('words')} words, ${total('bytes')} bytes`);
  console.log(published);
  for (const failure of failures) console.error(`failed: ${failure}`);
}

await main();
