/** The pages by what a reader wants. A test compares them with the files of docs/. */
export const SECTIONS = [
  { text: 'Start', pages: ['index', 'tutorial', 'how-it-works'] },
  {
    text: 'Coming from',
    pages: ['from-bullmq', 'from-bull', 'from-agenda', 'from-nest-schedule', 'from-asynq'],
  },
  {
    text: 'Tasks and handlers',
    pages: [
      'handlers',
      'submission',
      'uniqueness',
      'at-the-door',
      'results',
      'testing',
      'periodic-tasks',
      'transactions',
    ],
  },
  {
    text: 'Many tasks',
    pages: ['workflows', 'dependencies', 'batches', 'batch-handlers', 'groups', 'durable-handlers', 'heavy-work'],
  },
  { text: 'In production', pages: ['operations', 'limits', 'fairness', 'performance', 'events', 'metrics', 'tracing'] },
  { text: 'Tools', pages: ['dashboard', 'inspector', 'command-line'] },
  {
    text: 'Reference',
    pages: ['configuration', 'options', 'recipes', 'faq', 'troubleshooting', 'versions'],
  },
];
