-- Deletes keys that a deleted queue has left, unless a task was enqueued again: AdministrationRole.deleteQueue, the last step.
--
-- KEYS
--   1 pending
--   2 active
--   3 scheduled
--   4 retry
--   5 archived
--   6 completed
--   7 groups
--   8 aggregationSets
--   9 waitingTasks
--   10 fairRing
--   11 fairHeld
--   12… the keys to delete
-- ARGV
--   1 guards: how many of the keys show that the queue is in use
-- Returns
--   how many were deleted; -1 when the queue is in use

local guards = tonumber(ARGV[1])
if redis.call('EXISTS', unpack(KEYS, 1, guards)) > 0 then return -1 end
return redis.call('UNLINK', unpack(KEYS, guards + 1))
