-- Ends the pause of a periodic entry; planned times up to now count as skipped: SchedulingRole.resumeSchedule.
--
-- KEYS
--   1 schedule
-- ARGV
--   1 now: seconds
-- Returns
--   1 resumed, 0 it was not paused, -1 no process has opened the entry (nothing was written)

if not redis.call('HGET', KEYS[1], 'mark') then return -1 end
if redis.call('HDEL', KEYS[1], 'paused') == 0 then return 0 end
redis.call('HSET', KEYS[1], 'resumed', ARGV[1])
return 1
