-- Creates tasks in order, all of one queue: ProducerRole.enqueue.
-- The route of a task decides its state. A task of a call sees those before it.
--
-- KEYS
--   1 pending
--   2 scheduled
--   3 groups
--   4… the hash of each task; then, task by task, its lock when it is unique and the set of the group it joins; then delayedGroups, if any is 'l'
-- ARGV
--   1 taskPrefix
--   2 now: seconds
--   3 nowNanos
--   4 resent: '0'; when an earlier call may have done this, how each task is recognised: i by its id, which was made for it, m by its message
--   5 routes: a letter per task: p pending, s scheduled, g group, l a group later; upper case when it is unique
--   6… the message of each task; then, task by task, the TTL of its lock (seconds), its time (seconds), the name of its group
-- Returns
--   index and status of each task that was not created: 1 duplicate (its lock is held; checked first), 2 conflict (its id exists)

local note_rows, room, before, F -- those of an outbox, and of a bounded and of a fair queue: enqueue-rows.lua, …
-- Includes shared/enqueue.lua
