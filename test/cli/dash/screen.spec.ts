import { beforeEach, describe, expect, it, vi } from 'vitest';
import { Screen } from '../../../lib/cli/dash/screen.js';
import { ManualClock } from '../../../lib/clock.js';
import { CommandLineError } from '../../../lib/errors.js';
import { FakeTerminal } from '../../support/fake-terminal.js';

const ESC = '\u001b';

describe('the screen of the dashboard', () => {
  let terminal: FakeTerminal;
  let keys: string[];
  let screen: Screen;
  const listener = { onKey: (key: string) => void keys.push(key), onResize: vi.fn(), onGone: vi.fn() };

  beforeEach(() => {
    terminal = new FakeTerminal(new ManualClock());
    keys = [];
    screen = new Screen(terminal, listener);
    screen.open();
  });

  it.each([
    ['a', ['a']],
    ['R', ['R']],
    ['é', ['é']],
    ['日', ['日']],
    [' ', ['space']],
    ['\r', ['enter']],
    ['\n', ['enter']],
    ['\u007f', ['backspace']],
    ['\u0003', ['ctrl-c']],
    [`${ESC}[A${ESC}[B${ESC}[C${ESC}[D`, ['up', 'down', 'right', 'left']],
    [`${ESC}OA`, ['up']],
    [`${ESC}[5~${ESC}[6~`, ['pageup', 'pagedown']],
    [`${ESC}[H${ESC}[F${ESC}[1~${ESC}[4~`, ['home', 'end', 'home', 'end']],
    [`${ESC}d`, ['meta-d']],
  ])('reads %j as %j', (bytes, names) => {
    terminal.stdin.write(bytes);
    expect(keys).toEqual(names);
  });

  it('reads a lone escape as the Esc key after a short time', async () => {
    terminal.stdin.write(ESC);
    await vi.waitFor(() => expect(keys).toEqual(['escape']), { interval: 5 });
    terminal.stdin.write('k');
    expect(keys).toEqual(['escape', 'k']);
  });

  it('ignores pasted text', () => {
    terminal.stdin.write(`j${ESC}[200~Dy\rq${ESC}[201~k`);
    expect(keys).toEqual(['j', 'k']);
  });

  it('writes only changed lines, in one write', () => {
    terminal.written.length = 0;
    screen.draw(['one', 'two', 'three']);
    screen.draw(['one', '2', 'three']);
    screen.draw(['one', '2', 'three']);
    expect(terminal.written).toEqual([
      `${ESC}[1;1Hone${ESC}[0m${ESC}[K${ESC}[2;1Htwo${ESC}[0m${ESC}[K${ESC}[3;1Hthree${ESC}[0m${ESC}[K`,
      `${ESC}[2;1H2${ESC}[0m${ESC}[K`,
    ]);
    terminal.resize(10, 5);
    expect(listener.onResize).toHaveBeenCalledOnce();
    screen.draw(['one', '2', 'three']);
    expect(terminal.written.at(-1)).toMatch(/one.*2.*three/);
  });

  it('does not erase the last character of a full line', () => {
    terminal.resize(4, 5);
    screen.draw(['full', `${ESC}[1mbold${ESC}[0m`, 'not']);
    expect(terminal.written.at(-1)).toBe(
      `${ESC}[1;1Hfull${ESC}[0m${ESC}[2;1H${ESC}[1mbold${ESC}[0m${ESC}[0m${ESC}[3;1Hnot${ESC}[0m${ESC}[K`,
    );
  });

  it.each(['when it is closed', 'when the process ends'])('restores the terminal %s', (how) => {
    expect(terminal.rawModes).toEqual([true]);
    const entered = terminal.written.join('');
    if (how.includes('process')) for (const undo of terminal.undoings) undo();
    else screen.close();
    screen.close();
    expect(terminal.rawModes).toEqual([true, false]);
    const left = terminal.written.join('').slice(entered.length);
    for (const mode of ['1049', '2004']) {
      expect(entered).toContain(`${ESC}[?${mode}h`);
      expect(left.match(new RegExp(`\\[\\?${mode}l`, 'g'))).toHaveLength(1);
    }
    for (const mode of ['25', '7']) {
      expect(entered).toContain(`${ESC}[?${mode}l`);
      expect(left).toContain(`${ESC}[?${mode}h`);
    }
    expect(terminal.undoings.size).toBe(0);
    screen.draw(['late']);
    terminal.stdin.write('x');
    expect([terminal.written.join('').includes('late'), keys]).toEqual([false, []]);
  });

  it('reports that the terminal was closed', async () => {
    terminal.stdin.end();
    await vi.waitFor(() => expect(listener.onGone).toHaveBeenCalledOnce());
  });

  it.each<Record<string, string>>([{ TERM: 'dumb' }, { TERM: 'xterm', NO_COLOR: '1' }])(
    'knows what the terminal can do: %j',
    (env) => {
      const make = (): Screen => new Screen(new FakeTerminal(new ManualClock(), env), listener);
      if (env['TERM'] === 'dumb') expect(make).toThrow(CommandLineError);
      else expect(make().colors).toBe(false);
      expect(screen.colors).toBe(true);
    },
  );
});
