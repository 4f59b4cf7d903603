import { describe, expect, it } from 'vitest';
import { Permissions } from '../../../lib/dashboard/permissions.js';
import { firstQueue, reaches, reachesSomewhere, roleIn } from '../../../lib/dashboard/web/state/roles.js';

const QUEUES = ['mail', 'mail:bulk', 'mail:bulk:old', 'billing', 'default', '__proto__', 'mail*'];
const SETS = [
  'view',
  'destroy',
  { queues: { 'mail*': 'view', 'mail:bulk*': 'destroy', billing: 'act' } },
  { queues: { mail: 'act', ['__proto__']: 'act', '*': 'view' } },
  { queues: { 'mail:*': 'act' }, default: 'view' },
  { queues: { 'mail*': 'act' }, default: 'destroy' },
];

describe('roles by queue on the page', () => {
  it.each(SETS)('are those of the server: %j', (permission) => {
    const permissions = Permissions.of(permission, 'access', Error);
    const config = { role: permissions.general ?? null, queue_roles: permissions.byQueue };
    for (const queue of QUEUES)
      expect([queue, roleIn(config, queue)]).toEqual([queue, permissions.roleIn(queue) ?? null]);
    for (const role of ['view', 'act', 'destroy'] as const) {
      expect(reachesSomewhere(config, role)).toBe(reaches(permissions.greatest ?? null, role));
    }
  });

  it('start with a queue in which the user may act', () => {
    expect(firstQueue({ role: 'act', queue_roles: {} })).toBe('default');
    expect(firstQueue({ role: 'view', queue_roles: { low: 'view', mail: 'act' } })).toBe('mail');
    expect(firstQueue({ role: null, queue_roles: { 'mail*': 'act' } })).toBe('');
  });
});
