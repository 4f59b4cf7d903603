/** Keys as they are pressed one after the other; two spaces stand between alternatives. */
export const KEY_GROUPS: readonly { title: string; keys: readonly (readonly [keys: string, does: string])[] }[] = [
  {
    title: 'Anywhere',
    keys: [
      ['/', 'search or filter'],
      ['Esc', 'leave a field, close a dialog'],
      ['Tab', 'next link, button or field'],
      ['?', 'this list'],
    ],
  },
  {
    title: 'In a list',
    keys: [
      ['j  k', 'next and previous row'],
      ['Enter', 'open the row'],
      ['x', 'select the row'],
      ['n  p', 'next and previous page'],
    ],
  },
  {
    title: 'Go to',
    keys: [
      ['g o', 'overview of all queues, as g q'],
      ['g s', 'servers'],
      ['g c', 'schedules'],
      ['g w', 'runs of workflows'],
      ['g b', 'batches'],
      ['g u', 'outbox, if there is one'],
      ['g a', 'audit trail'],
      ['g r', 'Redis'],
      ['g h', 'history, if there is a Prometheus'],
      ['g e', 'enqueue a task'],
    ],
  },
  {
    title: 'In the graph of a run, with the focus on it',
    keys: [
      ['←  ↑  ↓  →', 'move it'],
      ['+  -', 'zoom in and out'],
      ['0', 'fit it into its place'],
    ],
  },
];
