-- Pauses a periodic entry: SchedulingRole.pauseSchedule.
--
-- KEYS
--   1 schedule
-- ARGV
--   1 now: seconds
-- Returns
--   1 paused, 0 it was paused already, -1 no process has opened the entry (nothing was written)

if not redis.call('HGET', KEYS[1], 'mark') then return -1 end
return redis.call('HSETNX', KEYS[1], 'paused', ARGV[1])
