// Adds up vitest's JSON reports in a folder: `node scripts/sum-reports.mjs FOLDER`.
// Ends with "N passed, N failed"; exits with 1 when a test failed or was skipped, or when none ran.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = process.argv[2];
const sum = { passed: 0, failed: 0, skipped: 0 };
for (const file of readdirSync(folder)) {
  const report = JSON.parse(readFileSync(join(folder, file), 'utf8'));
  const files = report.testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && !assertionResults.length,
  );
  sum.passed += report.numPassedTests;
  sum.failed += report.numFailedTests + files.length;
  sum.skipped += report.numPendingTests + report.numTodoTests;
}
if (sum.skipped) console.log(`${sum.skipped} tests were skipped: here every test must run.`);
console.log(`${sum.passed} passed, ${sum.failed} failed`);
if (sum.failed || sum.skipped || !sum.passed) process.exitCode = 1;
