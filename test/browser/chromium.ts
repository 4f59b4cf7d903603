import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { expect } from 'vitest';
// @ts-expect-error -- a script without types
import { findProgram } from '../../scripts/ensure-programs.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** A path, as Playwright wants it. */
async function executable(): Promise<string> {
  const found = (findProgram as (name: string) => { command: string } | undefined)('chromium');
  if (!found) throw new Error('no Chromium: run node scripts/ensure-programs.mjs chromium');
  if (found.command.includes('/')) return found.command;
  const folders = (process.env.PATH ?? '').split(':');
  const { existsSync } = await import('node:fs');
  const path = folders.map((folder) => `${folder}/${found.command}`).find(existsSync);
  if (!path) throw new Error(`${found.command} is not in PATH`);
  return path;
}

export const launch = async (): Promise<Browser> =>
  chromium.launch({ executablePath: await executable(), args: ['--no-sandbox', '--disable-dev-shm-usage'] });

export interface VisitOptions {
  width?: number;
  dark?: boolean;
  /** Statuses that the test expects: `404`. */
  expected?: readonly number[];
  /** The browser's reply to a challenge for name and password. */
  httpCredentials?: { username: string; password: string };
}

/** One tab, and all errors it logs. */
export class Visit {
  readonly complaints: string[] = [];
  /** Requests to the API, with their method. */
  readonly requests: string[] = [];

  private constructor(
    readonly context: BrowserContext,
    readonly page: Page,
    /** The address of the console, with a trailing slash. */
    readonly home: string,
  ) {}

  static async start(browser: Browser, home: string, options: VisitOptions = {}): Promise<Visit> {
    const { width = 1280, dark = false, expected = [], httpCredentials } = options;
    const context = await browser.newContext({
      viewport: { width, height: 860 },
      colorScheme: dark ? 'dark' : 'light',
      reducedMotion: 'reduce',
      httpCredentials,
    });
    context.setDefaultTimeout(30_000);
    const page = await context.newPage();
    const visit = new Visit(context, page, home);
    visit.listen(expected);
    return visit;
  }

  private listen(expected: readonly number[]): void {
    const { page, complaints } = this;
    page.on('pageerror', (error) => complaints.push(`error: ${error.message}`));
    page.on('dialog', (dialog) => complaints.push(`dialog: ${dialog.message()}`));
    page.on('console', (message) => {
      const reply = message.text().startsWith('Failed to load resource');
      if (!reply && ['error', 'warning'].includes(message.type())) complaints.push(`console: ${message.text()}`);
    });
    page.on('request', (request) => {
      const url = new URL(request.url());
      if (url.origin !== new URL(this.home).origin) complaints.push(`asks ${url.origin}`);
      if (url.pathname.includes('/api/')) this.requests.push(`${request.method()} ${url.pathname.split('/api/')[1]}`);
    });
    page.on('response', (response) => {
      if (response.status() >= 400 && !expected.includes(response.status())) {
        complaints.push(`${response.status()} for ${response.url()}`);
      }
    });
  }

  async open(route: string): Promise<void> {
    await this.page.goto(`${this.home}#/${route}`);
    await this.settled();
  }

  /** Waits until the page has loaded. */
  async settled(): Promise<void> {
    await this.page.locator('main h1').first().waitFor();
    await this.page.locator('.loading').first().waitFor({ state: 'detached' });
  }

  async sees(text: string | RegExp): Promise<void> {
    await this.page.getByText(text).filter({ visible: true }).first().waitFor();
  }

  async press(name: string | RegExp): Promise<void> {
    await this.page.getByRole('button', { name, exact: typeof name === 'string' }).click();
  }

  /** Presses a button in the open dialog. */
  async confirm(name: string): Promise<void> {
    await this.page.locator('dialog[open]').getByRole('button', { name, exact: true }).click();
    await this.page.locator('dialog[open]').waitFor({ state: 'detached' });
  }

  /**
   * The serious and critical findings of axe, by rule. It checks only some fields of INFO, which
   * are all alike.
   */
  async barriers(rules?: readonly string[]): Promise<string[]> {
    if (!(await this.page.evaluate('"axe" in globalThis'))) await this.page.evaluate(axe);
    return this.page.evaluate(async (rules) => {
      interface Result {
        violations: { id: string; impact: string; nodes: { html: string }[] }[];
      }
      const run = (globalThis as unknown as { axe: { run: (...args: unknown[]) => Promise<Result> } }).axe.run;
      const { violations } = await run(
        { exclude: ['.info-grid > div:nth-child(n + 12)'] },
        { resultTypes: ['violations'], ...(rules && { runOnly: rules }) },
      );
      return violations
        .filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 200)}`);
    }, rules);
  }

  /** Whether everything fits into the width. */
  fits(): Promise<boolean> {
    return this.page.evaluate(
      'document.documentElement.scrollWidth <= document.documentElement.clientWidth',
    ) as Promise<boolean>;
  }

  /** Closes the tab; it must not have logged an error. */
  async end(): Promise<void> {
    await this.context.close();
    expect(this.complaints).toEqual([]);
  }
}
