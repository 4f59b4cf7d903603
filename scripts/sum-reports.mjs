// Adds up vitest's JSON reports in a folder: `node scripts/sum-reports.mjs FOLDER`.
// Names each test that failed, with the first lines of its error, for those who have only the end of a log. Ends with "N passed, N failed"; exits with 1 when a test failed or was skipped, or when none ran.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';

const folder = process.argv[2];
/** Lines of an error that are shown. */
const LINES = 10;

const sum = { passed: 0, failed: 0, skipped: 0 };
for (const file of readdirSync(folder)) {
  const report = JSON.parse(readFileSync(join(folder, file), 'utf8'));
  const files = report.testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && !assertionResults.length,
  );
  for (const { name, message, assertionResults } of report.testResults) {
    const failed = assertionResults.filter(({ status }) => status === 'failed');
    for (const { fullName, failureMessages } of failed) show(`${name}: ${fullName}`, failureMessages.join('\n'));
    if (message && !assertionResults.length) show(name, message);
  }
  sum.passed += report.numPassedTests;
  sum.failed += report.numFailedTests + files.length;
  sum.skipped += report.numPendingTests + report.numTodoTests;
}
if (sum.skipped) console.log(`${sum.skipped} tests were skipped: here every test must run.`);
console.log(`${sum.passed} passed, ${sum.failed} failed`);
if (sum.failed || sum.skipped || !sum.passed) process.exitCode = 1;

function show(title, error) {
  const lines = stripVTControlCharacters(error)
    .split('\n')
    .filter((line) => !line.includes('node_modules'));
  console.log(`FAILED ${title}\n${lines.slice(0, LINES).join('\n')}\n`);
}
